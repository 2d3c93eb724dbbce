import { parseEnvironment } from '@atoll/kit/config'
import { z } from 'zod'

const int = (minimum: number) =>
  z.coerce
    .number()
    .int()
    .min(minimum)
    .max(2 ** 31 - 1)

export const ApiEnv = z.object({
  ATOLL_DATA_DIR: z
    .string()
    .min(1)
    .default('/var/lib/atoll')
    .describe('Where state is kept; the store is the file atoll.db in it'),
  ATOLL_BASE_CPU_COUNT: int(1).default(2).describe('CPU cores of a sandbox of the template base'),
  ATOLL_BASE_MEMORY_MB: int(128).default(1024).describe('Memory of it, in MiB'),
  ATOLL_BASE_DISK_SIZE_MB: int(0).default(4096).describe('Disk of it, in MiB'),
  ATOLL_MAX_SANDBOX_SECONDS: int(1)
    .default(86_400)
    .describe('The longest that a sandbox may run, in seconds'),
  ATOLL_LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('From which level on events are logged'),
})

export type ApiConfig = Readonly<z.infer<typeof ApiEnv>>

export function loadApiConfig(env: Record<string, string | undefined>): ApiConfig {
  return parseEnvironment(ApiEnv, env)
}
