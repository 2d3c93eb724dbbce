import { isIP, isIPv4 } from 'node:net'
import type { NetworkSettings } from '@atoll/contracts/network/config'
import type { Ingress, NetworkRules } from '@atoll/contracts/network/rules'
import { isDomainPattern, normalizeName } from '@atoll/kit/domain-name'
import { checkProxy, plainProxy } from './egress-proxy.ts'
import { checkHeaderRules, toDomainHeaders } from './header-rules.ts'
import { invalid, quote } from './network-fault.ts'

/** Outgoing and incoming network settings of a sandbox, as its creator sent them. */
export type SandboxNetwork = NetworkSettings

/** New egress settings of a running sandbox. Replaces all previous ones: an undefined field clears its setting. */
export interface EgressUpdate extends Pick<
  SandboxNetwork,
  'allowOut' | 'denyOut' | 'egressProxy' | 'rules'
> {
  readonly allowInternetAccess: boolean | undefined
}

/** Resolves the network rules and ingress settings of a sandbox for the node. */
export type NetworkAccessOf = (sandbox: {
  readonly id: string
  readonly teamId: string
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
}) => Promise<{ readonly network: NetworkRules; readonly ingress: Ingress }>

const everything = '0.0.0.0/0'
const envdPort = 49_983

/** `prefix` goes before the field names in error messages. */
export function checkEgress(settings: EgressUpdate, prefix = ''): void {
  const { allowOut = [], denyOut = [], egressProxy, rules, allowInternetAccess } = settings
  for (const entry of denyOut) {
    if (!isRange(entry)) {
      throw invalid(`${prefix}denyOut`, `${quote(entry)} is not an IP address or a CIDR range`)
    }
    checkSpecified(entry, `${prefix}denyOut`)
  }
  for (const entry of allowOut) checkAllowed(entry, `${prefix}allowOut`)
  const name = allowOut.find((entry) => !isRange(entry))
  const isClosed = allowInternetAccess === false || denyOut.includes(everything)
  if (name !== undefined && !isClosed) {
    throw invalid(
      `${prefix}allowOut`,
      `the domain ${quote(name)} has an effect only when ${prefix}denyOut contains "${everything}" or allow_internet_access is false`,
    )
  }
  if (egressProxy) checkProxy(egressProxy, `${prefix}egressProxy`)
  if (rules) checkHeaderRules(rules, `${prefix}rules`)
}

export function checkIngress(network: SandboxNetwork, isSecure: boolean, prefix: string): void {
  const { allowPublicTraffic, maskRequestHost, httpsPorts = [] } = network
  if (allowPublicTraffic === false && !isSecure) {
    throw invalid(`${prefix}allowPublicTraffic`, 'false needs secure: true')
  }
  if (maskRequestHost !== undefined && !isHostMask(maskRequestHost)) {
    throw invalid(
      `${prefix}maskRequestHost`,
      `${quote(maskRequestHost)} is not a host name with an optional port, such as "localhost:\${PORT}"`,
    )
  }
  if (httpsPorts.includes(envdPort)) {
    throw invalid(`${prefix}httpsPorts`, `${envdPort} is the port of envd, which speaks plain HTTP`)
  }
}

function isPrivate(sandbox: { readonly network: SandboxNetwork | undefined }): boolean {
  return sandbox.network?.allowPublicTraffic === false
}

/** Keeps the ingress settings that the sandbox was created with. */
export function replaceEgress<
  Networked extends {
    readonly allowInternetAccess: boolean | undefined
    readonly network: SandboxNetwork | undefined
  },
>(
  sandbox: Networked,
  { allowInternetAccess, allowOut, denyOut, egressProxy, rules }: EgressUpdate,
): Networked {
  const network = { ...sandbox.network, allowOut, denyOut, egressProxy, rules }
  return { ...sandbox, allowInternetAccess, network }
}

/** Network rules of a running sandbox. Only IPv4 addresses and ranges, because only IPv4 leaves a sandbox. */
export function rulesOf(sandbox: {
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
}): NetworkRules {
  const { allowOut = [], denyOut = [], egressProxy, rules = {} } = sandbox.network ?? {}
  const domains = toDomainHeaders(rules)
  const names = allowOut.filter((entry) => !isRange(entry)).map(normalizeName)
  return {
    allowOut: allowOut.filter(isIPv4Range),
    denyOut: sandbox.allowInternetAccess === false ? [everything] : denyOut.filter(isIPv4Range),
    allowNames: [...new Set(names)],
    ...(egressProxy && { proxy: plainProxy(egressProxy) }),
    ...(domains.length > 0 && { transforms: { domains } }),
  }
}

/** Includes `trafficToken` only if the sandbox is private. */
export function ingressOf(
  sandbox: { readonly network: SandboxNetwork | undefined },
  trafficToken: string,
): Ingress {
  const { maskRequestHost, httpsPorts = [] } = sandbox.network ?? {}
  return {
    ...(isPrivate(sandbox) && { trafficAccessToken: trafficToken }),
    ...(maskRequestHost !== undefined && { maskRequestHost }),
    httpsPorts,
  }
}

function checkAllowed(entry: string, field: string): void {
  if (isRange(entry)) return checkSpecified(entry, field)
  if (isDomainPattern(entry)) return
  throw invalid(field, `${quote(entry)} is not an IP address, a CIDR range or a domain`)
}

function isRange(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/')
  const family = isIP(address)
  if (family === 0 || address.includes('%') || rest.length > 0) return false
  // Same rule as on the node: a range that the node rejects would keep the sandbox from starting.
  return bits === undefined || (isCount(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

function isCount(digits: string): boolean {
  return /^(0|[1-9]\d{0,2})$/.test(digits)
}

function isIPv4Range(entry: string): boolean {
  return isRange(entry) && isIPv4(entry.replace(/\/.*$/, ''))
}

/**
 * Rejects ranges that start at the unspecified address, because tools interpret them differently. Only 0.0.0.0/0 is
 * clear.
 */
function checkSpecified(entry: string, field: string): void {
  if (entry === everything) return
  const [address = ''] = entry.split('/')
  const isUnspecified = /^0*$/.test(address.replace(/[.:]/g, ''))
  if (isUnspecified) throw invalid(field, `${quote(entry)} is not allowed; "${everything}" is`)
}

function isHostMask(mask: string): boolean {
  const [, host, port] = /^([^:]*)(?::(\d{1,5}|\$\{PORT\}))?$/.exec(mask) ?? []
  if (host === undefined || host.length > 253) return false
  if (port !== undefined && /^\d/.test(port) && !(Number(port) >= 1 && Number(port) <= 65_535)) {
    return false
  }
  return host.split('.').every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label))
}
