import { parseEnvironment } from '@atoll/kit/config'
import { z } from 'zod'
import { parseRegistries } from './domain/builds/image.ts'

export const NodeEnv = z.object({
  ATOLL_DATA_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .default('/var/lib/atoll')
    .describe('Where records, templates and the disks of sandboxes are kept.'),
  ATOLL_LAYERS_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Where template layers are kept; several installations may share it. Default: DATA_DIR/layers.',
    ),
  ATOLL_RUNTIME: z
    .enum(['auto', 'gvisor', 'runc'])
    .default('auto')
    .describe('What isolates sandboxes. auto takes gVisor and stops when it cannot run here.'),
  ATOLL_RUNSC: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'The runsc to run gVisor with, such as a newer release: an executable that only root can change. Default: the runsc on the search path, which set-up installs.',
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
    .describe('Name servers that sandboxes ask, comma separated.'),
  ATOLL_EGRESS_CA_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Authorities of servers to which header rules apply, beside those that this machine trusts, as a file in PEM.',
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
      'Registries that the images of templates may come from, comma separated. With http:// one is asked without TLS.',
    ),
  ATOLL_READY_SLOTS: z.coerce
    .number()
    .int()
    .min(0)
    .max(256)
    .default(4)
    .describe('How many network slots are kept ready for new sandboxes.'),
  ATOLL_READY_SANDBOXES: z.coerce
    .number()
    .int()
    .min(0)
    .max(256)
    .default(2)
    .describe('How many sandboxes of the template base are kept ready even when nobody wants one.'),
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
      'How many times the size of the data file system the disks of all sandboxes, running and paused, may add up to; beyond that none is created. Default: no limit, since disks take only what is written to them.',
    ),
  ATOLL_POOL_MEMORY_MB: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'Memory that sandboxes which are ready but nobody’s may take together; 0 keeps none ready. Default: a tenth of the machine’s.',
    ),
})

export type NodeConfig = Readonly<z.infer<typeof NodeEnv>>

export function loadNodeConfig(env: Record<string, string | undefined>): NodeConfig {
  return parseEnvironment(NodeEnv, env)
}
