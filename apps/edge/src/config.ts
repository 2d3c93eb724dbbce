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
})

export type EdgeConfig = Readonly<z.infer<typeof EdgeEnv>>

export function loadEdgeConfig(env: Record<string, string | undefined>): EdgeConfig {
  return parseEnvironment(EdgeEnv, env)
}
