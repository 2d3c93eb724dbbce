import { join } from 'node:path'
import { parseEnvironment, secretFile } from '@atoll/kit/config'
import { z } from 'zod'

const int = (minimum: number) =>
  z.coerce
    .number()
    .int()
    .min(minimum)
    .max(2 ** 31 - 1)

/** The messages never repeat the value: it holds a password. */
const databaseUrl = z
  .string()
  .refine(
    (text) => /^postgres(ql)?:\/\//.test(text) && URL.canParse(text),
    'must look like postgres://user:password@host:port/database',
  )

export const ApiEnv = z.object({
  ATOLL_DATA_DIR: z
    .string()
    .min(1)
    .default('/var/lib/atoll')
    .describe('Where state is kept; the store is the file atoll.db in it'),
  ATOLL_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'A PostgreSQL to keep records in: postgres://user:password@host:port/database. Default: SQLite, the file atoll.db in the data directory.',
    ),
  ATOLL_DATABASE_URL_FILE: secretFile
    .pipe(databaseUrl)
    .optional()
    .describe('A file with that URL, since it holds a password'),
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

export type ApiConfig = Readonly<Omit<z.infer<typeof ApiEnv>, 'ATOLL_DATABASE_URL_FILE'>>

export function loadApiConfig(env: Record<string, string | undefined>): ApiConfig {
  const { ATOLL_DATABASE_URL_FILE: fromFile, ...config } = parseEnvironment(ApiEnv, env)
  if (fromFile === undefined) return Object.freeze(config)
  if (config.ATOLL_DATABASE_URL !== undefined) {
    throw new Error(
      'configuration refused\n✖ Set ATOLL_DATABASE_URL or ATOLL_DATABASE_URL_FILE, not both',
    )
  }
  return Object.freeze({ ...config, ATOLL_DATABASE_URL: fromFile })
}

/** The URL of a PostgreSQL, or the path of the embedded store. */
export function storeLocation(config: ApiConfig): string {
  return config.ATOLL_DATABASE_URL ?? join(config.ATOLL_DATA_DIR, 'atoll.db')
}
