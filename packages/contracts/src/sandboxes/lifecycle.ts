import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Sandbox } from './views.ts'
import { SandboxParams } from './manage.ts'

/** Pause, resume and connect. */

const Memory = z
  .boolean()
  .optional()
  .describe('False: boot from the files even if memory was saved')

export const pauseSandbox = defineOperation({
  id: 'sandbox.pause',
  summary: 'Pause a sandbox: save its memory and files, and release everything but disk space',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/pause',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      memory: z
        .boolean()
        .optional()
        .describe('False: save only the files, so a resume boots again; true by default'),
    })
    .meta({ id: 'PauseSandbox' })
    .optional(),
  replies: { 204: { description: 'The sandbox is paused' } },
  errors: [400, 401, 404, 409, 500, 503, 507],
})

export const resumeSandbox = defineOperation({
  id: 'sandbox.resume',
  summary: 'Resume a paused sandbox; `timeout` is 15 seconds by default. Prefer connect',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/resume',
  auth: 'team',
  params: SandboxParams,
  body: z
    .object({
      timeout: z.int32().min(0).optional(),
      autoPause: z.boolean().optional().describe('Replaces the setting of the create request'),
      memory: Memory,
    })
    .meta({ id: 'ResumeSandbox' })
    .optional(),
  replies: { 201: { description: 'The sandbox is running', body: Sandbox } },
  errors: [400, 401, 404, 409, 500, 503, 504, 507],
})

const connectReplies = {
  200: { description: 'The sandbox was already running', body: Sandbox },
  201: { description: 'The sandbox was paused and is running again', body: Sandbox },
}
const connectErrors = [400, 401, 404, 409, 500, 503, 504, 507]

export const connectSandbox = defineOperation({
  id: 'sandbox.connect',
  summary:
    'Connect to a sandbox, resume it if paused, and extend its timeout to at least `timeout` seconds',
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
  summary:
    'Connect to a sandbox, resume it if paused, and extend its timeout; `timeout` is 300 seconds by default',
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
