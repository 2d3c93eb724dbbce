import type { Ingress, NetworkRules } from '@atoll/contracts/network/rules'

/** Builds the ingress and egress part of create and resume requests. */
export function toNetworkAccess(given: {
  readonly accessToken: string | undefined
  readonly network: NetworkRules
  readonly ingress: Ingress
}) {
  const { accessToken, network, ingress } = given
  return {
    ...(accessToken !== undefined && { accessToken }),
    network: toRules(network),
    ingress: { ...ingress, httpsPorts: [...ingress.httpsPorts] },
  }
}

export function toRules({ allowOut, denyOut, allowNames = [], proxy, transforms }: NetworkRules) {
  const { domains = [] } = transforms ?? {}
  return {
    allowOut: [...allowOut],
    denyOut: [...denyOut],
    allowNames: [...allowNames],
    ...(proxy && { proxy }),
    headerRules: domains.map(({ pattern, headers }) => ({ pattern, headers: { ...headers } })),
  }
}
