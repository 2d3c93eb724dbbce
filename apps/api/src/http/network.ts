import type { NetworkConfig, NetworkUpdate } from '@atoll/contracts/network-config'
import { updateSandboxNetwork } from '@atoll/contracts/sandbox-network'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../app/auth.ts'
import type { NetworkChanges } from '../app/network.ts'
import { checkEgress, checkIngress, domainsIn } from '../domain/network.ts'
import type { SandboxNetwork } from '../domain/network.ts'
import { addTeamRoute } from './route.ts'
import { isFilled, refuseFields } from './unsupported.ts'

interface NetworkRoutes {
  readonly authenticate: Authenticate
  readonly changes: NetworkChanges
}

export function addNetworkRoutes(server: FastifyInstance, routes: NetworkRoutes): void {
  const { authenticate, changes } = routes
  addTeamRoute(server, updateSandboxNetwork, authenticate, async ({ params, body }, { teamId }) => {
    checkEgress(body)
    refuseFields(unsupportedEgress(body))
    const { allowOut, denyOut, allow_internet_access: allowInternetAccess } = body
    await changes.update(teamId, params.sandboxID, { allowOut, denyOut, allowInternetAccess })
    return { status: 204 }
  })
}

/** What a new sandbox is given; undefined when nothing was asked for. */
export function toNetwork(
  config: NetworkConfig | undefined,
  isSecure: boolean,
): SandboxNetwork | undefined {
  if (!config) return undefined
  checkEgress(config, 'network.')
  checkIngress(config, isSecure, 'network.')
  const { allowOut, denyOut, allowPublicTraffic, maskRequestHost, httpsPorts } = config
  return { allowOut, denyOut, allowPublicTraffic, maskRequestHost, httpsPorts }
}

/** What needs somebody who looks into the traffic, which nobody does yet. */
export function unsupportedEgress(
  config: Omit<NetworkUpdate, 'allow_internet_access'>,
  prefix = '',
): Record<string, boolean> {
  return {
    [`${prefix}allowOut with domains`]: domainsIn(config).length > 0,
    [`${prefix}egressProxy`]: Boolean(config.egressProxy),
    [`${prefix}rules`]: isFilled(config.rules),
  }
}

/** As it was given. Proxies are not kept, so no password of one can come back. */
export function toNetworkView(network: SandboxNetwork): NetworkConfig {
  const { allowOut, denyOut, allowPublicTraffic, maskRequestHost, httpsPorts } = network
  return {
    ...(allowOut && { allowOut: [...allowOut] }),
    ...(denyOut && { denyOut: [...denyOut] }),
    ...(allowPublicTraffic !== undefined && { allowPublicTraffic }),
    ...(maskRequestHost !== undefined && { maskRequestHost }),
    ...(httpsPorts && { httpsPorts: [...httpsPorts] }),
  }
}
