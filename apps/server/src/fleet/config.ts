import { z } from 'zod'
import { parseEnvironment } from '@atoll/kit/config'
import { parseListenAddress } from '../listen-address.ts'
import { parseAccounts } from './kubernetes/accounts.ts'

const listenAddress = z.string().transform((text, context) => {
  const address = parseListenAddress(text)
  if (address) return address
  context.addIssue('must be host:port, [IPv6]:port or a port')
  return z.NEVER
})

const addresses = z.string().transform((text, context) => {
  const parsed = text.split(',').map((part) => parseListenAddress(part))
  const found = parsed.filter((address) => address !== undefined && address.port > 0)
  if (found.length === parsed.length) return found.filter((address) => address !== undefined)
  context.addIssue('must be host:port, comma separated')
  return z.NEVER
})

const accounts = z.string().transform((text, context) => {
  const parsed = parseAccounts(text)
  if (parsed) return parsed
  context.addIssue('must be role=namespace/name, comma separated, with the role edge or node')
  return z.NEVER
})

/** Settings of `atoll api`, `atoll edge` and `atoll node`. `atoll up` uses none of them. */
export const FleetEnv = z.object({
  ATOLL_FLEET_LISTEN: listenAddress
    .optional()
    .describe(
      'Fleet only. Address for other parts: of an api for edges and nodes (default 0.0.0.0:3300), of a node for apis and edges (default 0.0.0.0:3310). Mutual TLS.',
    ),
  ATOLL_FLEET_ADDRESS: listenAddress
    .refine(({ port }) => port > 0, 'must have a port')
    .optional()
    .describe(
      'Fleet only. host:port at which apis and edges reach this node. Default: ATOLL_FLEET_LISTEN, which then must name an address.',
    ),
  ATOLL_FLEET_APIS: addresses
    .optional()
    .describe(
      'Fleet only. Internal addresses of the apis, host:port, comma separated. Nodes and edges use whichever answers. Default: the one that the part joined.',
    ),
  ATOLL_FLEET_HOLD_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .max(3600)
    .default(45)
    .describe(
      'Fleet only. How long an edge holds a request while the node of its sandbox does not answer, for example because its agent restarts.',
    ),
  ATOLL_FLEET_LOST_SECONDS: z.coerce
    .number()
    .int()
    .min(30)
    .max(86_400)
    .default(60)
    .describe(
      'Fleet only. A node that sends no heartbeat for so long is lost: its running sandboxes end. The same for all apis.',
    ),
  ATOLL_FLEET_DRAIN_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .max(3600)
    .default(25)
    .describe(
      'Fleet only. When a part stops, it takes no new connections and gives open requests this long to finish.',
    ),
  ATOLL_FLEET_CA_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Fleet only. PEM file with the authority of the fleet: for apis its certificate and key, for pods that join with a service account its certificate. Default: an authority that the first api creates and keeps in the database.',
    ),
  ATOLL_FLEET_JOIN_TOKEN_FILE: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Fleet only. File with a join token, or with a token of a Kubernetes service account. An edge or a node that has not joined yet joins with it when it starts. Needs ATOLL_FLEET_APIS. Default: atoll node join and atoll edge join.',
    ),
  ATOLL_FLEET_KUBERNETES_ACCOUNTS: accounts
    .optional()
    .describe(
      'Fleet only. Kubernetes service accounts whose pods may join, for apis in the same cluster: role=namespace/name, comma separated. Default: none.',
    ),
  KUBERNETES_SERVICE_HOST: z
    .string()
    .optional()
    .describe('Set by Kubernetes in every pod: address of its API server.'),
  KUBERNETES_SERVICE_PORT: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe('Set by Kubernetes in every pod: port of its API server.'),
})

export type FleetConfig = Readonly<z.infer<typeof FleetEnv>>

export function loadFleetConfig(env: Record<string, string | undefined>): FleetConfig {
  return parseEnvironment(FleetEnv, env)
}
