import type * as encryption from '@atoll/contracts/encryption'
import type * as progress from '@atoll/contracts/builds/progress'
import type * as logs from '@atoll/contracts/logs'
import type * as metrics from '@atoll/contracts/metrics'
import type * as nodes from '@atoll/contracts/nodes'
import type { AdminTeam as AdminTeamSchema } from '@atoll/contracts/teams/admin'
import type { CreatedTeamApiKey, TeamApiKey } from '@atoll/contracts/teams/api-keys'
import type { SandboxConnection as SandboxConnectionSchema } from '@atoll/contracts/network/connections'
import type * as changes from '@atoll/contracts/sandboxes/changes'
import type * as lineage from '@atoll/contracts/sandboxes/lineage'
import type { TimelineEvent as TimelineEventSchema } from '@atoll/contracts/sandboxes/timeline'
import type * as views from '@atoll/contracts/sandboxes/views'
import type * as secrets from '@atoll/contracts/secrets'
import type { SnapshotInfo } from '@atoll/contracts/snapshots'
import type { CatalogueTemplate } from '@atoll/contracts/templates/catalogue'
import type * as templates from '@atoll/contracts/templates/manage'
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
export type ListedNode = z.infer<typeof nodes.Node>
export type NodeInfo = z.infer<typeof nodes.NodeDetail>
export type KeyRotationReply = z.infer<typeof encryption.KeyRotation>
export type AdminTeam = z.infer<typeof AdminTeamSchema>
export type ApiKey = z.infer<typeof TeamApiKey>
/** Contains the key itself, which is sent only once; the server stores a hash. */
export type CreatedApiKey = z.infer<typeof CreatedTeamApiKey>
export type Template = z.infer<typeof templates.Template>
export type TemplateWithBuilds = z.infer<typeof templates.TemplateWithBuilds>
export type BuildInfo = z.infer<typeof progress.TemplateBuildInfo>
export type BuildLogEntry = z.infer<typeof progress.BuildLogEntry>
export type Secret = z.infer<typeof secrets.Secret>
export type TeamMetric = z.infer<typeof metrics.TeamMetric>
export type SandboxMetric = z.infer<typeof metrics.SandboxMetric>
export type FileChange = z.infer<typeof changes.FileChange>
export type FileChanges = z.infer<typeof changes.FileChanges>
export type ChangedFile = z.infer<typeof changes.ChangedFile>
export type TimelineEvent = z.infer<typeof TimelineEventSchema>
export type SandboxLineage = z.infer<typeof lineage.SandboxLineage>
export type LineageSandbox = z.infer<typeof lineage.LineageSandbox>
export type LineageSnapshot = z.infer<typeof lineage.LineageSnapshot>
export type SandboxConnection = z.infer<typeof SandboxConnectionSchema>
export type SandboxLogEntry = z.infer<typeof logs.SandboxLogEntry>
