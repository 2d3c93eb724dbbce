/**
 * Finds out where a request comes from, for programs in sandboxes that stand behind the edge and perhaps other proxies.
 *
 * Threats: anyone can send X-Forwarded-* headers. Only those of a trusted proxy count, and of its list of addresses only
 * the part that trusted proxies wrote.
 */
import { isIP } from 'node:net'

export type IsTrustedProxy = (address: string) => boolean

/** A connection to the edge, and the last X-Forwarded-* headers that came over it. */
export interface Arrival {
  readonly address: string
  readonly isTls: boolean
  /** Host header as the client sent it. */
  readonly authority: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Origin {
  /** Address of the client. */
  readonly for: string
  readonly proto: 'http' | 'https'
  readonly host: string
}

export function originOf(arrival: Arrival, isTrusted: IsTrustedProxy): Origin {
  const address = normalizeAddress(arrival.address) ?? 'unknown'
  const direct: Origin = {
    for: address,
    proto: arrival.isTls ? 'https' : 'http',
    host: arrival.authority,
  }
  if (!isTrusted(address)) return direct
  const proto = lastOf(arrival, 'x-forwarded-proto')?.toLowerCase()
  const host = lastOf(arrival, 'x-forwarded-host')
  return {
    for: clientBehind(address, entriesOf(arrival, 'x-forwarded-for'), isTrusted),
    proto: proto === 'http' || proto === 'https' ? proto : direct.proto,
    host: host !== undefined && authority.test(host) ? host : direct.host,
  }
}

/** Walks the list from its end: each trusted proxy has appended the address that it saw. */
function clientBehind(proxy: string, entries: readonly string[], isTrusted: IsTrustedProxy) {
  let client = proxy
  for (const entry of entries.toReversed()) {
    const address = normalizeAddress(entry)
    if (address === undefined) return client
    client = address
    if (!isTrusted(address)) return client
  }
  return client
}

/** The entries that the proxy next to the edge added last cannot be forged by its clients. */
function lastOf(arrival: Arrival, name: string): string | undefined {
  return entriesOf(arrival, name).at(-1)
}

function entriesOf({ headers }: Arrival, name: string): string[] {
  const values = [headers[name] ?? []].flat()
  return values.flatMap((value) => value.split(',').map((entry) => entry.trim()))
}

/** Accepts addresses with a port, which some proxies write. Returns undefined if the text is no address. */
function normalizeAddress(text: string): string | undefined {
  const withPort = /^\[([^\]]+)\](?::\d{1,5})?$|^([0-9.]+):\d{1,5}$/.exec(text)
  const address = (withPort?.[1] ?? withPort?.[2] ?? text).replace(/^::ffff:(?=[0-9.]+$)/i, '')
  return isIP(address) === 0 ? undefined : address
}

const authority = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?$/i
