import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'

/** Settings of the object store in the environment. */
export const objectEnv = {
  ATOLL_S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket')
    .optional()
    .describe(
      'Bucket of an S3 object store that all nodes of a fleet share: snapshots, templates and paused sandboxes are uploaded there and outlive their node. Default: none, all stays on the node.',
    ),
  ATOLL_S3_ENDPOINT: z
    .url({ protocol: /^https?$/, error: 'must be a URL such as https://s3.example.com' })
    .optional()
    .describe('Address of the object store. Default: the one of AWS for the region.'),
  ATOLL_S3_REGION: z.string().min(1).default('us-east-1').describe('Region of the bucket.'),
  ATOLL_S3_ACCESS_KEY_ID: z
    .string()
    .min(1)
    .optional()
    .describe('Access key of the object store. Needed with ATOLL_S3_BUCKET.'),
  ATOLL_S3_SECRET_ACCESS_KEY: z
    .string()
    .min(1)
    .optional()
    .describe('Secret of the access key. Needed with ATOLL_S3_BUCKET.'),
  ATOLL_S3_PATH_STYLE: z
    .enum(['true', 'false'])
    .default('false')
    .transform((text) => text === 'true')
    .describe(
      'Whether requests name the bucket in the path instead of the host name. Most stores other than that of AWS need true.',
    ),
  ATOLL_S3_PREFIX: z
    .string()
    .regex(
      /^([A-Za-z0-9_-][A-Za-z0-9._-]*\/)*$/,
      'must be empty or end with a slash, such as atoll/',
    )
    .default('')
    .describe('Start of the keys of all objects, for a bucket that has other objects too.'),
  ATOLL_S3_KEY_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'File with the keys that encrypt objects, the same on all nodes of a fleet: 64 hexadecimal digits per line, the current key first. Needed with ATOLL_S3_BUCKET.',
    ),
  ATOLL_S3_CACHE_MB: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'Maximum size of the snapshots and paused sandboxes on a node that are also in the object store, in MiB: beyond it, the node removes files, the least recently used first. Default: no limit, so it removes files while disk space is scarce only.',
    ),
}

export interface ObjectSettings {
  readonly bucket: string
  readonly endpoint: string | undefined
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly pathStyle: boolean
  readonly prefix: string
  readonly keyFile: string
}

type ObjectEnv = Readonly<z.infer<z.ZodObject<typeof objectEnv>>>

/** Returns undefined without a bucket. Throws a fault when a setting is missing beside it. */
export function objectSettingsOf(env: ObjectEnv): ObjectSettings | undefined {
  const bucket = env.ATOLL_S3_BUCKET
  if (bucket === undefined) return undefined
  return {
    bucket,
    endpoint: env.ATOLL_S3_ENDPOINT,
    region: env.ATOLL_S3_REGION,
    accessKeyId: env.ATOLL_S3_ACCESS_KEY_ID ?? missing('ATOLL_S3_ACCESS_KEY_ID'),
    secretAccessKey: env.ATOLL_S3_SECRET_ACCESS_KEY ?? missing('ATOLL_S3_SECRET_ACCESS_KEY'),
    pathStyle: env.ATOLL_S3_PATH_STYLE,
    prefix: env.ATOLL_S3_PREFIX,
    keyFile: env.ATOLL_S3_KEY_FILE ?? missing('ATOLL_S3_KEY_FILE'),
  }
}

function missing(name: string): never {
  throw new Fault(
    'invalid',
    'configuration_refused',
    `${name} is not set, and ATOLL_S3_BUCKET needs it: set it, or unset ATOLL_S3_BUCKET`,
  )
}
