import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Sandbox } from './views.ts'
import { SandboxParams } from './manage.ts'

/** Putting a sandbox aside and bringing it back. */

const Memory = z
  .boolean()
  .optional()
  .describe('False: boot from the files alone, even if memory was kept')

export const pauseSandbox = defineOperation({
  id: 'sandbox.pause',
  summary: 'Pause a sandbox: it keeps its memory and files and takes nothing but disk',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/pause',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      memory: z
        .boolean()
        .optional()
        .describe('False: keep the files alone, so that a resume boots anew; true by default'),
    })
    .meta({ id: 'PauseSandbox' })
    .optional(),
  replies: { 204: { description: 'It is paused' } },
  errors: [400, 401, 404, 409, 500, 503, 507],
})

export const resumeSandbox = defineOperation({
  id: 'sandbox.resume',
  summary: 'Resume a paused sandbox for `timeout` (15) seconds; rather use connect',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/resume',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      timeout: z.int32().min(0).optional(),
      autoPause: z.boolean().optional().describe('Instead of what it was created with'),
      memory: Memory,
    })
    .meta({ id: 'ResumeSandbox' })
    .optional(),
  replies: { 201: { description: 'It runs again', body: Sandbox } },
  errors: [400, 401, 404, 409, 500, 503, 504, 507],
})

const connectReplies = {
  200: { description: 'It was running already', body: Sandbox },
  201: { description: 'It was paused and runs again', body: Sandbox },
}
const connectErrors = [400, 401, 404, 409, 500, 503, 504, 507]

export const connectSandbox = defineOperation({
  id: 'sandbox.connect',
  summary:
    'Connect to a sandbox, resume it if it is paused, and let it live `timeout` more seconds',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/connect',
  auth: 'team',
  params: SandboxParams,
  body: z.object({ timeout: z.int32().min(0), memory: Memory }).meta({ id: 'ConnectSandbox' }),
  replies: connectReplies,
  errors: connectErrors,
})

export const connectSandboxV2 = defineOperation({
  id: 'sandbox.connectV2',
  summary: 'Connect to a sandbox, resume it if it is paused, and let it live 300 more seconds',
  method: 'POST',
  path: '/v2/sandboxes/{sandboxID}/connect',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({ timeout: z.int32().min(0).optional(), memory: Memory })
    .meta({ id: 'ConnectSandboxV2' })
    .optional(),
  replies: connectReplies,
  errors: connectErrors,
})
