import { isIPv4 } from 'node:net'
import { isDomainName, normalizeName } from './domain-name.ts'

export interface HostPort {
  /** IPv4 address, or a domain name as `normalizeName` returns it. */
  readonly host: string
  readonly port: number
}

/** Returns undefined unless the text is a valid `host:port`. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, host = '', digits = ''] = /^([^:]+):([1-9]\d{0,4})$/.exec(text) ?? []
  const port = Number(digits)
  if (port > 65_535) return undefined
  if (isIPv4(host)) return { host, port }
  return isDomainName(host) ? { host: normalizeName(host), port } : undefined
}

export function formatHostPort({ host, port }: HostPort): string {
  return `${host}:${port}`
}
