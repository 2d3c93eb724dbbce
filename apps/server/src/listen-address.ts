import { isIP, isIPv6 } from 'node:net'

/** Address of a listener. Port 0 lets the system choose. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Parses `host:port`, `[v6]:port`, `:port` and `port`. Returns undefined for other text. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([^\]]+)\]:|([^:[\]]*):)?([0-9]{1,5})$/.exec(text.trim())
  if (!match) return undefined
  const [, bracketed, name, digits] = match
  const host = bracketed ?? (name || '127.0.0.1')
  const port = Number(digits)
  if (port > 65_535 || (bracketed !== undefined && !isIPv6(bracketed))) return undefined
  // The host reaches the store and the resolver: PostgreSQL refuses NUL, for example.
  if (bracketed === undefined && !/^[\w.-]+$/.test(host)) return undefined
  // Digits and dots that are no valid address would be resolved as a name and fail late.
  if (/^[0-9.]+$/.test(host) && isIP(host) === 0) return undefined
  return { host, port }
}

export function formatListenAddress({ host, port }: ListenAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}

/** Returns the URL by which this machine reaches the address. */
export function toUrl({ host, port }: ListenAddress): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${formatListenAddress({ host: reachable, port })}`
}

/** Returns a domain under localhost: browsers resolve every name below it to this machine. */
export function localDomain(sandboxUrl: string): string {
  const { hostname, port } = new URL(sandboxUrl)
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  return `${isAddress ? 'localhost' : hostname}:${port || '80'}`
}
