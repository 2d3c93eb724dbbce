import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { PageQuery } from '../schemas/paging.ts'
import { ListedSandbox, ListedState, SandboxDetail } from './views.ts'
import { Text, Timestamp } from '../schemas/text.ts'

/** List, get, kill and timeout operations. `create.ts` has create, `lifecycle.ts` pause and resume. */

/** Old clients append the client ID, `<sandboxID>-<clientID>`; the suffix is dropped. */
export const SandboxId = z
  .string()
  .regex(/^[a-z0-9]+(-[a-z0-9]+)?$/, {
    error: 'Invalid sandbox ID: use lower-case letters and digits, as POST /sandboxes returned it',
  })
  .transform((id) => id.replace(/-.*$/, ''))

export const SandboxParams = z.object({ sandboxID: SandboxId })

const maxIds = 100

export const SandboxIds = z
  .string()
  .transform((list) => list.split(','))
  .pipe(
    z
      .array(SandboxId)
      .max(maxIds, { error: `must name at most ${maxIds} sandboxes` })
      .refine((ids) => new Set(ids).size === ids.length, { error: 'must name each sandbox once' }),
  )
  .describe('Comma-separated list of up to 100 unique IDs')

const MetadataQuery = z
  .string()
  .optional()
  .describe('Pairs that must all match: `key=value&…`, keys and values percent-encoded')

const States = z
  .string()
  .transform((list) => list.split(','))
  .pipe(z.array(ListedState))

export const listSandboxes = defineOperation({
  id: 'sandbox.list',
  summary: 'List running sandboxes, newest first',
  method: 'GET',
  path: '/sandboxes',
  auth: 'team',
  query: z.object({ metadata: MetadataQuery }),
  replies: { 200: { description: 'All running sandboxes', body: z.array(ListedSandbox) } },
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
    state: States.default(['running', 'paused']).describe(
      'Comma-separated list of `running`, `paused` and `ended`. Ended sandboxes are kept for 7 days',
    ),
    search: Text.refine((text) => text.length <= 200, { error: 'must have at most 200 characters' })
      .optional()
      .describe(
        'Words that must all occur in the ID, the template or a `key=value` of the metadata; letters of the English alphabet match in upper and lower case',
      ),
    sort: z
      .enum(['started', 'ends', 'state', 'template', 'cpu', 'memory'])
      .default('started')
      .describe(
        'Start time, end time, state, template name, or usage in the last sample. By state, running sandboxes come before ' +
          'paused and ended ones (with `desc`), and newer ones before older ones. Sandboxes that are not running have no usage',
      ),
    order: z.enum(['asc', 'desc']).default('desc').describe('Ascending or descending'),
    startedAfter: Timestamp.optional().describe('Inclusive'),
    template: z.string().optional().describe('Template ID or alias, without a tag'),
    ...PageQuery,
  }),
  replies: {
    200: {
      description: 'One page',
      body: z.array(ListedSandbox),
      headers: {
        'X-Next-Token': 'Present when there is another page',
        'X-Total-Matches': 'Number of matching sandboxes on all pages together',
        'X-Total-Running': 'Number of matching running sandboxes on all pages together',
      },
    },
  },
  errors: [400, 401, 500],
})

export const getSandbox = defineOperation({
  id: 'sandbox.get',
  summary: 'Get a sandbox',
  method: 'GET',
  path: '/sandboxes/{sandboxID}',
  auth: 'team',
  params: SandboxParams,
  replies: { 200: { description: 'The sandbox', body: SandboxDetail } },
  errors: [400, 401, 404, 500],
})

export const killSandbox = defineOperation({
  id: 'sandbox.kill',
  summary: 'Kill a running or paused sandbox and release its resources',
  method: 'DELETE',
  path: '/sandboxes/{sandboxID}',
  auth: 'team',
  params: SandboxParams,
  replies: { 204: { description: 'The sandbox is removed' } },
  errors: [400, 401, 404, 500],
})

export const setSandboxTimeout = defineOperation({
  id: 'sandbox.timeout',
  summary: 'Set the timeout of a sandbox in seconds from now, sooner or later than before',
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
  summary:
    'Extend the timeout of a sandbox to at least `duration` seconds (15 by default); never shortens it',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/refreshes',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      duration: z
        .int()
        .min(0)
        .max(3600)
        .optional()
        .describe('Seconds; values below 15 count as 15'),
    })
    .meta({ id: 'SandboxRefresh' })
    .optional(),
  replies: { 204: { description: 'Refreshed' } },
  errors: [400, 401, 404, 409, 500],
})
