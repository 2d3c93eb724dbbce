import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { PageQuery } from './schemas/paging.ts'
import { SandboxId, SandboxParams } from './sandboxes/manage.ts'
import { Sandbox } from './sandboxes/views.ts'
import { ErrorBody } from './errors.ts'
import { Text } from './schemas/text.ts'

/** Copies of running sandboxes: stored ones (snapshots) and running ones (forks). */

export const SnapshotInfo = z
  .object({
    snapshotID: z.string().describe('Use it as `templateID` of a new sandbox'),
    names: z.array(z.string()).describe('`namespace/alias`, without a tag'),
  })
  .meta({ id: 'SnapshotInfo' })

export const createSnapshot = defineOperation({
  id: 'snapshot.create',
  summary: 'Create a snapshot of a running sandbox, which keeps running',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/snapshots',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      name: Text.optional().describe(
        '`[namespace/]alias[:tag]`; an existing name gets a new build',
      ),
    })
    .meta({ id: 'NewSnapshot' }),
  replies: { 201: { description: 'The snapshot', body: SnapshotInfo } },
  errors: [400, 401, 404, 409, 500, 503, 507],
})

export const listSnapshots = defineOperation({
  id: 'snapshot.list',
  summary: 'List the snapshots of the team in pages, newest first',
  method: 'GET',
  path: '/snapshots',
  auth: 'team',
  query: z.object({
    sandboxID: SandboxId.optional().describe('Only snapshots of this sandbox'),
    name: Text.optional().describe('Only snapshots of this name'),
    ...PageQuery,
  }),
  replies: {
    200: {
      description: 'One page',
      body: z.array(SnapshotInfo),
      headers: { 'X-Next-Token': 'Present when there is another page' },
    },
  },
  errors: [400, 401, 500],
})

export const ForkResult = z
  .object({
    sandbox: Sandbox.optional(),
    error: ErrorBody.optional().describe('Why this copy failed'),
  })
  .meta({ id: 'ForkResult' })

export const forkSandbox = defineOperation({
  id: 'sandbox.fork',
  summary: 'Start copies of a running sandbox, which keeps running',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/fork',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      timeout: z
        .int32()
        .min(0)
        .optional()
        .describe('Seconds until the copies time out; 15 by default'),
      count: z.int32().min(1).max(100).optional().describe('Number of copies; 1 by default'),
    })
    .meta({ id: 'ForkSandbox' })
    .optional(),
  replies: { 201: { description: 'One result per copy', body: z.array(ForkResult) } },
  errors: [400, 401, 404, 409, 500, 503, 507],
})
