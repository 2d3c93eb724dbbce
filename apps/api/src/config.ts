import { join } from 'node:path'
import { operations } from '@atoll/contracts/operations'
import { parseEnvironment, secretFile } from '@atoll/kit/config'
import { z } from 'zod'
import { asksForPrimary, splitHosts } from './db/postgres/hosts.ts'
import type { TeamLimits } from './domain/teams/limits.ts'
import type { Resources } from './domain/template.ts'

const int = (minimum: number) =>
  z.coerce
    .number()
    .int()
    .min(minimum)
    .max(2 ** 31 - 1)

/** Error messages must not contain the URL: it includes a password. */
const databaseUrl = z
  .string()
  .refine(
    (text) => splitHosts(text) !== undefined,
    'must look like postgres://user:password@host:port/database, or with several host:port, separated by commas',
  )
  .refine(
    asksForPrimary,
    'target_session_attrs must be read-write or primary, or absent: records are written',
  )

const adminToken = z.string().min(16, 'must have at least 16 characters')

const operationIds = new Set(['*', ...operations.map(({ id }) => id)])

const rateLimits = z.string().transform((text, context) => {
  const limits = new Map<string, { requests: number; seconds: number }>()
  for (const part of text.split(',').filter((piece) => piece.trim() !== '')) {
    const [, id = '', requests, seconds] =
      /^\s*([\w.*]+)=([1-9][0-9]{0,8})\/([1-9][0-9]{0,5})\s*$/.exec(part) ?? []
    if (!operationIds.has(id)) {
      context.addIssue(
        `"${part}" must be operation=requests/seconds; docs/api.md lists the operations`,
      )
      return z.NEVER
    }
    limits.set(id, { requests: Number(requests), seconds: Number(seconds) })
  }
  return limits
})

export const ApiEnv = z.object({
  ATOLL_DATA_DIR: z
    .string()
    .min(1)
    .default('/var/lib/atoll')
    .describe('Directory for all data; the SQLite store is the file atoll.db in it'),
  ATOLL_DATABASE_URL: databaseUrl
    .optional()
    .describe(
      'PostgreSQL database for all records: postgres://user:password@host:port/database. With several host:port, separated by commas, the server that takes writes is used. Default: SQLite, the file atoll.db in the data directory.',
    ),
  ATOLL_DATABASE_URL_FILE: secretFile
    .pipe(databaseUrl)
    .optional()
    .describe('File that contains the value of ATOLL_DATABASE_URL, which has a password'),
  ATOLL_ENCRYPTION_KEY_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'File with the keys that encrypt secrets, proxy passwords and CA keys: 64 hexadecimal digits per line, the current key first, readable by root only. All servers on one database need the same keys. Default: DATA_DIR/encryption-keys, created at the first start.',
    ),
  ATOLL_BASE_CPU_COUNT: int(1)
    .default(2)
    .describe('CPU cores of a sandbox created from the template base'),
  ATOLL_BASE_MEMORY_MB: int(128)
    .default(1024)
    .describe('Memory of a sandbox created from base, in MiB'),
  ATOLL_BASE_DISK_SIZE_MB: int(0)
    .default(4096)
    .describe('Disk size of a sandbox created from base, in MiB'),
  ATOLL_MAX_SANDBOX_SECONDS: int(1)
    .default(86_400)
    .describe('Maximum running time of a sandbox, in seconds'),
  ATOLL_TEAM_CONCURRENT_SANDBOXES: int(1)
    .default(100)
    .describe(
      'Maximum number of concurrent sandboxes of a team, unless the team has its own limit',
    ),
  ATOLL_TEAM_MAX_CPU_COUNT: int(1)
    .optional()
    .describe(
      'Maximum number of CPU cores of a sandbox. Default: 8, or the number of base if that is higher.',
    ),
  ATOLL_TEAM_MAX_MEMORY_MB: int(128)
    .optional()
    .describe(
      'Maximum memory of a sandbox, in MiB. Default: 8192, or the memory of base if that is larger.',
    ),
  ATOLL_TEAM_MAX_DISK_SIZE_MB: int(0)
    .optional()
    .describe(
      'Maximum disk size of a sandbox, in MiB. Default: 25600, or the size of base if that is larger.',
    ),
  ATOLL_TEAM_CONCURRENT_BUILDS: int(1)
    .default(20)
    .describe(
      'Maximum number of concurrent template builds of a team, unless the team has its own limit',
    ),
  ATOLL_TEAM_KEPT_DISK_MB: int(1)
    .default(102_400)
    .describe(
      'Maximum disk space of all templates, paused sandboxes and snapshots of a team, in MiB, unless the team has its own limit',
    ),
  ATOLL_UNUSED_BUILD_HOURS: int(1)
    .default(168)
    .describe(
      'How long to keep the files of an old build of a template that no tag, sandbox or snapshot uses any more',
    ),
  ATOLL_INSTALL_TEMPLATES: z
    .enum(['on-demand', 'by-operator'])
    .default('on-demand')
    .describe(
      'Who installs templates of the catalogue, such as code-interpreter-v1. on-demand: the first create of a template installs it and waits, which takes minutes. by-operator: such a create gets 409, and an operator runs atoll template install.',
    ),
  ATOLL_MAX_BUILD_FILES_MB: int(1)
    .default(2048)
    .describe('Maximum size of an archive of files for a template build, in MiB'),
  ATOLL_RATE_LIMITS: rateLimits
    .optional()
    .describe(
      'Rate limits per team, as operation=requests/seconds, comma separated, for example sandbox.create=5/1,*=20000/30; * is each operation that is not named. The limits hold for all apis of a fleet together. Default: no limits.',
    ),
  ATOLL_ADMIN_TOKEN: adminToken
    .optional()
    .describe(
      'Token of operators, sent in the header X-Admin-Token; at least 16 characters. Default: the admin operations are off.',
    ),
  ATOLL_ADMIN_TOKEN_FILE: secretFile
    .pipe(adminToken)
    .optional()
    .describe('File that contains the value of ATOLL_ADMIN_TOKEN'),
  ATOLL_LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('From which level on events are logged'),
})

type Settings = z.infer<typeof ApiEnv>

export type ApiConfig = Readonly<Omit<Settings, `${Secret}_FILE`>>

const secrets = ['ATOLL_DATABASE_URL', 'ATOLL_ADMIN_TOKEN'] as const

type Secret = (typeof secrets)[number]

export function loadApiConfig(env: Record<string, string | undefined>): ApiConfig {
  const settings = parseEnvironment(ApiEnv, env)
  const twice = secrets.filter((name) => settings[name] && settings[`${name}_FILE`])
  if (twice.length > 0) {
    const advice = twice.map((name) => `✖ Set ${name} or ${name}_FILE, not both`)
    throw new Error(`configuration refused\n${advice.join('\n')}`)
  }
  const {
    ATOLL_DATABASE_URL_FILE: url = settings.ATOLL_DATABASE_URL,
    ATOLL_ADMIN_TOKEN_FILE: adminTokenGiven = settings.ATOLL_ADMIN_TOKEN,
    ...config
  } = settings
  return Object.freeze({
    ...config,
    ...(url !== undefined && { ATOLL_DATABASE_URL: url }),
    ...(adminTokenGiven !== undefined && { ATOLL_ADMIN_TOKEN: adminTokenGiven }),
  })
}

/** Default limits of a team. */
export function configuredLimits(config: ApiConfig): TeamLimits {
  const { ATOLL_TEAM_MAX_CPU_COUNT, ATOLL_TEAM_MAX_MEMORY_MB, ATOLL_TEAM_MAX_DISK_SIZE_MB } = config
  return {
    concurrentSandboxes: config.ATOLL_TEAM_CONCURRENT_SANDBOXES,
    maxSandboxSeconds: config.ATOLL_MAX_SANDBOX_SECONDS,
    maxCpuCount: ATOLL_TEAM_MAX_CPU_COUNT ?? Math.max(8, config.ATOLL_BASE_CPU_COUNT),
    maxMemoryMb: ATOLL_TEAM_MAX_MEMORY_MB ?? Math.max(8192, config.ATOLL_BASE_MEMORY_MB),
    maxDiskSizeMb: ATOLL_TEAM_MAX_DISK_SIZE_MB ?? Math.max(25_600, config.ATOLL_BASE_DISK_SIZE_MB),
    concurrentBuilds: config.ATOLL_TEAM_CONCURRENT_BUILDS,
    keptDiskMb: config.ATOLL_TEAM_KEPT_DISK_MB,
  }
}

/** Resources of the template `base`. */
export function baseResources(config: ApiConfig): Resources {
  return {
    cpuCount: config.ATOLL_BASE_CPU_COUNT,
    memoryMb: config.ATOLL_BASE_MEMORY_MB,
    diskSizeMb: config.ATOLL_BASE_DISK_SIZE_MB,
  }
}

/** Returns the PostgreSQL URL or the path of the SQLite file. */
export function storeLocation(config: ApiConfig): string {
  return config.ATOLL_DATABASE_URL ?? join(config.ATOLL_DATA_DIR, 'atoll.db')
}
