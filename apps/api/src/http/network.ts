import type { NetworkConfig } from '@atoll/contracts/network/config'
import type { NewSandboxV2 } from '@atoll/contracts/sandboxes/create'
import { updateSandboxNetwork } from '@atoll/contracts/network/update'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../app/teams/auth.ts'
import type { RuleFilling } from '../app/network/fill-rules.ts'
import type { NetworkChanges } from '../app/network/network.ts'
import type { RequestedProxy } from '../domain/network/egress-proxy.ts'
import { withoutValues } from '../domain/network/header-rules.ts'
import { checkEgress, checkIngress } from '../domain/network/network.ts'
import type { SandboxNetwork } from '../domain/network/network.ts'
import { addTeamRoute } from './server/route.ts'

interface NetworkRoutes {
  readonly authenticate: Authenticate
  readonly changes: NetworkChanges
  readonly rules: Pick<RuleFilling, 'check'>
}

export function addNetworkRoutes(server: FastifyInstance, routes: NetworkRoutes): void {
  const { authenticate, changes, rules: filling } = routes
  addTeamRoute(server, updateSandboxNetwork, authenticate, async ({ params, body }, { teamId }) => {
    const { allowOut, denyOut, rules, allow_internet_access: allowInternetAccess } = body
    const egressProxy = body.egressProxy ?? undefined
    const settings = { allowOut, denyOut, egressProxy, rules, allowInternetAccess }
    checkEgress(settings)
    await filling.check(teamId, rules, 'rules')
    await changes.update(teamId, params.sandboxID, settings)
    return { status: 204 }
  })
}

/** Validates the network settings of a new sandbox; undefined when the request has none. */
export function toNetwork(
  { network: config, allow_internet_access: allowInternetAccess }: NewNetwork,
  isSecure: boolean,
): SandboxNetwork | undefined {
  if (!config) return undefined
  const { allowOut, denyOut, rules, allowPublicTraffic, maskRequestHost, httpsPorts } = config
  const egress = { allowOut, denyOut, rules, egressProxy: config.egressProxy ?? undefined }
  const network = { ...egress, allowPublicTraffic, maskRequestHost, httpsPorts }
  checkEgress({ ...egress, allowInternetAccess }, 'network.')
  checkIngress(network, isSecure, 'network.')
  return network
}

type NewNetwork = Pick<NewSandboxV2, 'network' | 'allow_internet_access'>

/** Returns the settings as requested, without the proxy password and header values: the API never returns secrets. */
export function toNetworkView(network: SandboxNetwork): NetworkConfig {
  const { allowOut, denyOut, egressProxy, rules, ...ingress } = network
  const { allowPublicTraffic, maskRequestHost, httpsPorts } = ingress
  return {
    ...(allowOut && { allowOut: [...allowOut] }),
    ...(denyOut && { denyOut: [...denyOut] }),
    ...(egressProxy && { egressProxy: toProxyView(egressProxy) }),
    ...(rules && { rules: withoutValues(rules) }),
    ...(allowPublicTraffic !== undefined && { allowPublicTraffic }),
    ...(maskRequestHost !== undefined && { maskRequestHost }),
    ...(httpsPorts && { httpsPorts: [...httpsPorts] }),
  }
}

function toProxyView({ address, username }: RequestedProxy) {
  return { address, ...(username !== undefined && { username }) }
}
