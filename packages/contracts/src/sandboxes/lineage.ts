import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { SnapshotInfo } from '../snapshots.ts'
import { Timestamp } from '../schemas/text.ts'
import { SandboxParams } from './manage.ts'
import { ListedState, SandboxParent } from './views.ts'

/** Family of a sandbox: the sandboxes it was copied from, and all their copies. */

export const LineageSandbox = z
  .object({
    sandboxID: z.string(),
    templateID: z.string(),
    buildID: z.string().describe('Build of the template, or of the snapshot'),
    alias: z.string().optional(),
    state: ListedState,
    parent: SandboxParent.optional(),
    createdAt: Timestamp,
    endedAt: Timestamp.optional(),
    endReason: z.string().optional(),
  })
  .meta({ id: 'LineageSandbox' })

export const LineageSnapshot = SnapshotInfo.extend({
  sandboxID: z.string().describe('Sandbox that the snapshot was made of'),
  createdAt: Timestamp,
}).meta({ id: 'LineageSnapshot' })

export const SandboxLineage = z
  .object({
    sandboxes: z
      .array(LineageSandbox)
      .describe('Oldest first. A parent that is not in the list ended more than 7 days ago'),
    snapshots: z.array(LineageSnapshot).describe('Snapshots of these sandboxes, newest first'),
    isComplete: z.boolean().describe('False if the family has more than 200 members'),
  })
  .meta({ id: 'SandboxLineage' })

export const getSandboxLineage = defineOperation({
  id: 'sandbox.lineage',
  summary: 'List the sandboxes that a sandbox was copied from, all their forks and their snapshots',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/lineage',
  auth: 'team',
  params: SandboxParams,
  replies: { 200: { description: 'Also for ended sandboxes', body: SandboxLineage } },
  errors: [400, 401, 404, 500],
})
