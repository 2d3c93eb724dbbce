import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { PageQuery } from './schemas/paging.ts'
import { SandboxId, SandboxParams } from './sandboxes/manage.ts'
import { Sandbox } from './sandboxes/views.ts'
import { ErrorBody } from './errors.ts'
import { Text } from './schemas/text.ts'

/** Copies of running sandboxes: those that are kept, and those that run on at once. */

export const SnapshotInfo = z
  .object({
    snapshotID: z.string().describe('What to use as `templateID` of a new sandbox'),
    names: z.array(z.string()).describe('As `namespace/alias`, without a tag'),
  })
  .meta({ id: 'SnapshotInfo' })

export const createSnapshot = defineOperation({
  id: 'snapshot.create',
  summary: 'Copy a running sandbox, which goes on; new sandboxes can be made of the copy',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/snapshots',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      name: Text.optional().describe(
        '`[namespace/]alias[:tag]`; one that is used again gets a new build',
      ),
    })
    .meta({ id: 'NewSnapshot' }),
  replies: { 201: { description: 'The copy is there', body: SnapshotInfo } },
  errors: [400, 401, 404, 409, 500, 503, 507],
})

export const listSnapshots = defineOperation({
  id: 'snapshot.list',
  summary: 'List the snapshots of the team in pages, newest first',
  method: 'GET',
  path: '/snapshots',
  auth: 'team',
  query: z.object({
    sandboxID: SandboxId.optional().describe('Only copies of this sandbox'),
    name: Text.optional().describe('Only those of this name'),
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
    error: ErrorBody.optional().describe('Why there is no sandbox'),
  })
  .meta({ id: 'ForkResult' })

export const forkSandbox = defineOperation({
  id: 'sandbox.fork',
  summary: 'Make running copies of a running sandbox, which goes on; they live 15 seconds',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/fork',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      timeout: z.int32().min(0).optional().describe('Seconds until the copies end; 15 by default'),
      count: z.int32().min(1).max(100).optional().describe('How many; 1 by default'),
    })
    .meta({ id: 'ForkSandbox' })
    .optional(),
  replies: { 201: { description: 'What became of each copy', body: z.array(ForkResult) } },
  errors: [400, 401, 404, 409, 500, 503, 507],
})
