import type { CreatedTeamApiKey, TeamApiKey } from '@atoll/contracts/keys'
import type * as views from '@atoll/contracts/sandbox-views'
import type { SnapshotInfo } from '@atoll/contracts/snapshots'
import type { TemplateTag } from '@atoll/contracts/template-tags'
import type { z } from 'zod'

/** What the platform answers, by the schemas of the contract. What a newer server sends beyond them is left out. */

/** The reply to create and connect. */
export type ConnectedSandbox = z.infer<typeof views.Sandbox>
export type ListedSandbox = z.infer<typeof views.ListedSandbox>
export type SandboxDetail = z.infer<typeof views.SandboxDetail>
export type SandboxState = z.infer<typeof views.SandboxState>
export type Snapshot = z.infer<typeof SnapshotInfo>
export type SnapshotTag = z.infer<typeof TemplateTag>
export type ApiKey = z.infer<typeof TeamApiKey>
/** Only here is the key itself sent; the server keeps a hash of it. */
export type CreatedApiKey = z.infer<typeof CreatedTeamApiKey>
