import type { EgressProxy } from '../domain/network/egress-proxy.ts'
import type { Ingress, NetworkRules } from '../domain/network/network.ts'

/** Builds the ingress and egress part of create and resume requests. */
export function toReach(given: {
  readonly accessToken: string | undefined
  readonly network: NetworkRules
  readonly ingress: Ingress
}) {
  const { accessToken, network, ingress } = given
  const { trafficAccessToken, maskRequestHost, httpsPorts } = ingress
  return {
    ...(accessToken !== undefined && { accessToken }),
    network: toRules(network),
    ingress: {
      ...(trafficAccessToken !== undefined && { trafficAccessToken }),
      ...(maskRequestHost !== undefined && { maskRequestHost }),
      httpsPorts: [...httpsPorts],
    },
  }
}

export function toRules({ allowOut, denyOut, allowNames, proxy, headerRules }: NetworkRules) {
  return {
    allowOut: [...allowOut],
    denyOut: [...denyOut],
    allowNames: [...allowNames],
    ...(proxy && { proxy: toProxy(proxy) }),
    headerRules: headerRules.map(({ pattern, headers }) => ({ pattern, headers: { ...headers } })),
  }
}

function toProxy({ address, username, password }: EgressProxy) {
  return {
    address,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  }
}
