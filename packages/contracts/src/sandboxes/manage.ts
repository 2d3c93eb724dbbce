import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { PageQuery } from '../schemas/paging.ts'
import { ListedSandbox, SandboxDetail, SandboxState } from './views.ts'
import { Timestamp } from '../schemas/text.ts'

/** The operations on sandboxes that exist. Making one is in `sandbox-create.ts`, pausing in `sandbox-lifecycle.ts`. */

/** An old form carries the client id as well, `<sandboxID>-<clientID>`: the suffix is dropped. */
export const SandboxId = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)?$/, {
    error: 'Invalid sandbox ID: use lower-case letters and digits, as POST /sandboxes returned it',
  })
  .transform((id) => id.replace(/-.*$/, ''))

export const SandboxParams = z.object({ sandboxID: SandboxId })

const MetadataQuery = z
  .string()
  .optional()
  .describe('Pairs that must all match, `key=value&…`, keys and values percent-encoded')

const States = z
  .string()
  .transform((list) => list.split(','))
  .pipe(z.array(SandboxState))

export const listSandboxes = defineOperation({
  id: 'sandbox.list',
  summary: 'List running sandboxes, newest first',
  method: 'GET',
  path: '/sandboxes',
  auth: 'team',
  query: z.object({ metadata: MetadataQuery }),
  replies: { 200: { description: 'All of them', body: z.array(ListedSandbox) } },
  errors: [400, 401, 500],
})

export const listSandboxesV2 = defineOperation({
  id: 'sandbox.listV2',
  summary: 'List sandboxes in pages',
  method: 'GET',
  path: '/v2/sandboxes',
  auth: 'team',
  query: z.object({
    metadata: MetadataQuery,
    state: States.default(['running', 'paused']).describe('A comma list of running, paused'),
    order: z.enum(['asc', 'desc']).default('desc').describe('By start time'),
    startedAfter: Timestamp.optional().describe('Inclusive'),
    template: z.string().optional().describe('A template id or alias, without a tag'),
    ...PageQuery,
  }),
  replies: {
    200: {
      description: 'One page',
      body: z.array(ListedSandbox),
      headers: {
        'X-Next-Token': 'Present when there is another page',
        'X-Total-Running': 'How many running sandboxes match, on all pages together',
      },
    },
  },
  errors: [400, 401, 500],
})

export const getSandbox = defineOperation({
  id: 'sandbox.get',
  summary: 'Show one sandbox',
  method: 'GET',
  path: '/sandboxes/{sandboxID}',
  auth: 'team',
  params: SandboxParams,
  replies: { 200: { description: 'The sandbox', body: SandboxDetail } },
  errors: [400, 401, 404, 500],
})

export const killSandbox = defineOperation({
  id: 'sandbox.kill',
  summary: 'End a running or paused sandbox and remove what it held',
  method: 'DELETE',
  path: '/sandboxes/{sandboxID}',
  auth: 'team',
  params: SandboxParams,
  replies: { 204: { description: 'Nothing of it is left' } },
  errors: [400, 401, 404, 500],
})

export const setSandboxTimeout = defineOperation({
  id: 'sandbox.timeout',
  summary: 'Let a sandbox end this many seconds from now, sooner or later than before',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/timeout',
  auth: 'team',
  params: SandboxParams,
  body: z.object({ timeout: z.int32().min(0) }).meta({ id: 'SandboxTimeout' }),
  replies: { 204: { description: 'Set' } },
  errors: [400, 401, 404, 409, 500],
})

export const refreshSandbox = defineOperation({
  id: 'sandbox.refresh',
  summary: 'Let a sandbox live at least `duration` (15) more seconds, never fewer than it had',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/refreshes',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      duration: z.int().min(0).max(3600).optional().describe('Seconds; fewer than 15 count as 15'),
    })
    .meta({ id: 'SandboxRefresh' })
    .optional(),
  replies: { 204: { description: 'Refreshed' } },
  errors: [400, 401, 404, 409, 500],
})
