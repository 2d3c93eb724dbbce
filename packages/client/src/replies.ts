import type { CreatedTeamApiKey, TeamApiKey } from '@atoll/contracts/teams/api-keys'
import type * as views from '@atoll/contracts/sandboxes/views'
import type { SnapshotInfo } from '@atoll/contracts/snapshots'
import type { CatalogueTemplate } from '@atoll/contracts/templates/catalogue'
import type { TemplateTag } from '@atoll/contracts/templates/tags'
import type { z } from 'zod'

/**
 * Replies of the platform API, typed by the schemas of the contract. Unknown properties of newer servers are dropped.
 */

/** Reply to create and connect. */
export type ConnectedSandbox = z.infer<typeof views.Sandbox>
export type ListedSandbox = z.infer<typeof views.ListedSandbox>
export type SandboxDetail = z.infer<typeof views.SandboxDetail>
export type SandboxState = z.infer<typeof views.SandboxState>
export type Snapshot = z.infer<typeof SnapshotInfo>
export type SnapshotTag = z.infer<typeof TemplateTag>
export type CatalogueEntry = z.infer<typeof CatalogueTemplate>
export type ApiKey = z.infer<typeof TeamApiKey>
/** Contains the key itself, which is sent only once; the server stores a hash. */
export type CreatedApiKey = z.infer<typeof CreatedTeamApiKey>
