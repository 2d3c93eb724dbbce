import { z } from 'zod'
import { parseEnvironment } from '@atoll/kit/config'

export const EdgeEnv = z.object({
  ATOLL_EDGE_MAX_REQUESTS_PER_SANDBOX: z.coerce
    .number()
    .int()
    .min(1)
    .optional()
    .describe(
      'Maximum of open requests and WebSockets per sandbox. Default: a quarter of ATOLL_MAX_CONNECTIONS.',
    ),
  ATOLL_EDGE_ACCESS_LOG: z
    .enum(['on', 'off'])
    .optional()
    .describe(
      'on: logs each request to a sandbox when it has ended: client, sandbox, port, method, path without query, status, duration and bytes. Default: off.',
    ),
})

export type EdgeConfig = Readonly<z.infer<typeof EdgeEnv>>

export function loadEdgeConfig(env: Record<string, string | undefined>): EdgeConfig {
  return parseEnvironment(EdgeEnv, env)
}
