import { parseEnvironment } from '@atoll/kit/config'
import { objectEnv } from '@atoll/objects/settings'
import { z } from 'zod'
import { parseRegistries } from './domain/builds/image.ts'
import { parseVariables } from './domain/builds/variables.ts'

export const NodeEnv = z.object({
  ATOLL_DATA_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .default('/var/lib/atoll')
    .describe('Directory for records, templates and the disks of sandboxes.'),
  ATOLL_ENCRYPTION_KEY_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'File with the keys that encrypt private values in records. Default: DATA_DIR/encryption-keys.',
    ),
  ATOLL_LAYERS_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Directory for template layers; several installations can share it. Default: DATA_DIR/layers.',
    ),
  ATOLL_RUNTIME: z
    .enum(['auto', 'gvisor', 'runc'])
    .default('auto')
    .describe(
      'Runtime that isolates sandboxes. auto uses gVisor and refuses to start if it does not run on this machine.',
    ),
  ATOLL_RUNSC: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Path of the runsc to use for gVisor, for example of a newer release. Only root may have write access to it. Default: the runsc on the search path, which the set-up installs.',
    ),
  ATOLL_SUBNET: z
    .cidrv4('must be an IPv4 network such as 10.213.0.0/16')
    .default('10.213.0.0/16')
    .describe('Addresses for sandboxes, four each; must not overlap a network this machine uses.'),
  ATOLL_NAMESERVERS: z
    .string()
    .default('8.8.8.8,1.1.1.1')
    .transform((list) => list.split(','))
    .pipe(z.array(z.ipv4()).min(1).max(3))
    .describe('Name servers of sandboxes, comma separated.'),
  ATOLL_EGRESS_CA_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'PEM file with certificate authorities of servers that header rules apply to, in addition to the authorities that this machine trusts.',
    ),
  ATOLL_REGISTRIES: z
    .string()
    .default(
      'docker.io,ghcr.io,quay.io,gcr.io,*.gcr.io,*.pkg.dev,*.azurecr.io,mcr.microsoft.com,public.ecr.aws',
    )
    .transform((text, context) => {
      const registries = parseRegistries(text)
      if (registries) return registries
      context.addIssue('must be hosts such as docker.io, *.example.com or http://10.0.0.5:5000')
      return z.NEVER
    })
    .describe(
      'Allowed image registries for templates, comma separated. Prefix http:// for a registry without TLS.',
    ),
  ATOLL_READY_SLOTS: z.coerce
    .number()
    .int()
    .min(0)
    .max(256)
    .default(4)
    .describe('Number of network slots that are prepared for new sandboxes.'),
  ATOLL_READY_SANDBOXES: z.coerce
    .number()
    .int()
    .min(0)
    .max(256)
    .default(2)
    .describe(
      'Minimum number of pre-warmed sandboxes of the template base, independent of demand.',
    ),
  ATOLL_CONCURRENT_BUILDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe(
      'Number of template builds that run at a time; others wait. A team without a running build may use one more. Default: 4, or the number of CPUs if that is more.',
    ),
  ATOLL_BUILD_READY_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(3000)
    .default(120)
    .describe(
      'Time limit for the ready command of a build, from the start of the start command. A build whose ready command does not succeed in time fails.',
    ),
  ATOLL_BUILD_ENV: z
    .string()
    .default('')
    .transform((text, context) => {
      const variables = parseVariables(text)
      if (variables) return variables
      context.addIssue(
        'must be variables such as http_proxy=http://proxy.example:3128, separated by spaces',
      )
      return z.NEVER
    })
    .describe(
      'Variables of all build steps, separated by spaces: proxies and mirrors, for example http_proxy=… PIP_INDEX_URL=… Programs of a build can read them; templates do not keep them.',
    ),
  ATOLL_DISK_RESERVE_MB: z.coerce
    .number()
    .int()
    .min(64)
    .optional()
    .describe(
      'Space of the data file system that sandboxes never get, in MiB: the store, logs and deletions need it. Default: 5 % of it, at least 512 (or 10 % if that is less), at most 1024.',
    ),
  ATOLL_DISK_OVERCOMMIT: z.coerce
    .number()
    .positive()
    .optional()
    .describe(
      'Maximum total size of the disks of all sandboxes, running and paused, as a multiple of the size of the data file system. Default: no limit, since disks take only the space that is written to.',
    ),
  ...objectEnv,
  ATOLL_POOL_MEMORY_MB: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'Maximum memory of all pre-warmed sandboxes, in MiB; 0 turns warm pools off. Default: a tenth of the memory of the machine.',
    ),
})

export type NodeConfig = Readonly<z.infer<typeof NodeEnv>>

export function loadNodeConfig(env: Record<string, string | undefined>): NodeConfig {
  return parseEnvironment(NodeEnv, env)
}
