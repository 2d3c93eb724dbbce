import { isIP, isIPv4 } from 'node:net'
import { isDomainPattern, normalizeName } from '@atoll/kit/domain-name'
import { checkProxy, plainProxy } from './egress-proxy.ts'
import type { EgressProxy } from './egress-proxy.ts'
import { checkHeaderRules, plainHeaderRules } from './header-rules.ts'
import type { HeaderRules, PlainHeaderRule } from './header-rules.ts'
import { invalid, quote } from './network-fault.ts'

/** What may leave a sandbox and how it is reached, as its creator asked for it. */
export interface SandboxNetwork extends Egress {
  /** False: whoever comes to its ports needs a token. */
  readonly allowPublicTraffic?: boolean | undefined
  readonly maskRequestHost?: string | undefined
  readonly httpsPorts?: readonly number[] | undefined
}

interface Egress {
  /** Addresses, ranges and names. */
  readonly allowOut?: readonly string[] | undefined
  readonly denyOut?: readonly string[] | undefined
  readonly egressProxy?: EgressProxy | undefined
  readonly rules?: HeaderRules | undefined
}

/** What a running sandbox is to be given instead of what it had; what is undefined is cleared. */
export interface EgressWish extends Egress {
  readonly allowInternetAccess: boolean | undefined
}

/** What the node enforces: IPv4 addresses and ranges, as nothing else leaves a sandbox anyway, and what has a name. */
export interface NetworkRules {
  readonly allowOut: readonly string[]
  readonly denyOut: readonly string[]
  /** As `normalizeName` writes them. */
  readonly allowNames: readonly string[]
  readonly proxy: EgressProxy | undefined
  readonly headerRules: readonly PlainHeaderRule[]
}

/** What the edge does for those who come in. */
export interface Ingress {
  readonly trafficAccessToken: string | undefined
  readonly maskRequestHost: string | undefined
  readonly httpsPorts: readonly number[]
}

/** Both, as the node is told of them. */
export type ReachOf = (sandbox: {
  readonly id: string
  readonly teamId: string
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
}) => Promise<{ readonly network: NetworkRules; readonly ingress: Ingress }>

const everything = '0.0.0.0/0'
const envdPort = 49_983

/** `prefix` names the fields as the caller sent them. */
export function checkEgress(wish: EgressWish, prefix = ''): void {
  const { allowOut = [], denyOut = [], egressProxy, rules, allowInternetAccess } = wish
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

/** How it is reached stays as it was created. */
export function replaceEgress<
  Networked extends {
    readonly allowInternetAccess: boolean | undefined
    readonly network: SandboxNetwork | undefined
  },
>(
  sandbox: Networked,
  { allowInternetAccess, allowOut, denyOut, egressProxy, rules }: EgressWish,
): Networked {
  const network = { ...sandbox.network, allowOut, denyOut, egressProxy, rules }
  return { ...sandbox, allowInternetAccess, network }
}

/** What is in force for it while it runs. */
export function rulesOf(sandbox: {
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
}): NetworkRules {
  const { allowOut = [], denyOut = [], egressProxy, rules = {} } = sandbox.network ?? {}
  const names = allowOut.filter((entry) => !isRange(entry)).map(normalizeName)
  return {
    allowOut: allowOut.filter(isIPv4Range),
    denyOut: sandbox.allowInternetAccess === false ? [everything] : denyOut.filter(isIPv4Range),
    allowNames: [...new Set(names)],
    proxy: egressProxy && plainProxy(egressProxy),
    headerRules: plainHeaderRules(rules),
  }
}

/** `trafficToken`: its own, asked for where it is private. */
export function ingressOf(
  sandbox: { readonly network: SandboxNetwork | undefined },
  trafficToken: string,
): Ingress {
  const { maskRequestHost, httpsPorts = [] } = sandbox.network ?? {}
  return {
    trafficAccessToken: isPrivate(sandbox) ? trafficToken : undefined,
    maskRequestHost,
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
  // As the node reads it, too: what it does not take would keep the sandbox from ever starting.
  return bits === undefined || (isCount(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

function isCount(digits: string): boolean {
  return /^(0|[1-9]\d{0,2})$/.test(digits)
}

function isIPv4Range(entry: string): boolean {
  return isRange(entry) && isIPv4(entry.replace(/\/.*$/, ''))
}

/** What begins at "no address" means something else to everybody, but for all of IPv4. */
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
