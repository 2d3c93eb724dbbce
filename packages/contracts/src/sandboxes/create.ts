import { z } from 'zod'
import { NetworkConfig } from '../network/config.ts'
import { defineOperation } from '../operation.ts'
import { Sandbox } from './views.ts'
import { byteLength, Text } from '../schemas/text.ts'

/** Create operations: `POST /sandboxes` and `POST /v2/sandboxes`. */

const metadataLimitBytes = 64 * 1024
const variableLimitBytes = 128 * 1024 - 1 // Linux limit for one environment string, without its NUL

const Metadata = z
  .record(Text, Text)
  .refine((metadata) => byteLength(JSON.stringify(metadata)) <= metadataLimitBytes, {
    error: `must be at most ${metadataLimitBytes} bytes as JSON`,
  })

const EnvVars = z
  .record(Text.regex(/^[^=]+$/, { error: 'names must not be empty or contain "="' }), Text)
  .refine(
    (variables) =>
      Object.entries(variables).every(
        ([name, value]) => byteLength(`${name}=${value}`) <= variableLimitBytes,
      ),
    { error: `each variable must be at most ${variableLimitBytes} bytes as NAME=value` },
  )

const shape = {
  templateID: z.string().describe('Template ID or alias, optionally with `:tag` or `:<build ID>`'),
  timeout: z.int32().min(0).optional().describe('Seconds until the sandbox times out'),
  autoPause: z
    .boolean()
    .optional()
    .describe('Pause the sandbox at its timeout instead of killing it'),
  autoPauseMemory: z
    .boolean()
    .optional()
    .describe(
      'False: that pause saves only the files, as it always does if the runtime cannot save memory',
    ),
  autoResume: z
    .object({ enabled: z.boolean() })
    .optional()
    .describe(
      'Whether requests to its ports resume the sandbox while it is paused with its memory',
    ),
  allow_internet_access: z
    .boolean()
    .optional()
    .describe('False: same as `network.denyOut` of only `0.0.0.0/0`'),
  network: NetworkConfig.optional(),
  metadata: Metadata.optional(),
  envVars: EnvVars.optional(),
  mcp: z.record(z.string(), z.unknown()).nullish(),
  iam: z.object({ tokens: z.record(z.string(), z.unknown()).optional() }).optional(),
  volumeMounts: z.array(z.object({ name: z.string(), path: z.string() })).optional(),
}

const NewSandbox = z.object({ ...shape, secure: z.boolean().optional() }).meta({ id: 'NewSandbox' })

export const NewSandboxV2 = z.object(shape).meta({ id: 'NewSandboxV2' })

export type NewSandboxV2 = z.infer<typeof NewSandboxV2>

const replies = { 201: { description: 'The sandbox is running', body: Sandbox } }
const errors = [400, 401, 404, 409, 500, 503, 504, 507]

export const createSandbox = defineOperation({
  id: 'sandbox.create',
  summary: 'Create a sandbox; `timeout` is 15 seconds by default',
  method: 'POST',
  path: '/sandboxes',
  auth: 'team',
  body: NewSandbox,
  replies,
  errors,
})

export const createSandboxV2 = defineOperation({
  id: 'sandbox.createV2',
  summary: 'Create a secured sandbox; `timeout` is 300 seconds by default',
  method: 'POST',
  path: '/v2/sandboxes',
  auth: 'team',
  body: NewSandboxV2,
  replies,
  errors,
})
