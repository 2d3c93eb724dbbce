import { isIPv4 } from 'node:net'
import { isDomainName, plainName } from './domain-name.ts'

export interface HostPort {
  /** An IPv4 address, or a name as `plainName` writes it. */
  readonly host: string
  readonly port: number
}

/** Undefined for what is no `host:port`. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, host = '', digits = ''] = /^([^:]+):([1-9]\d{0,4})$/.exec(text) ?? []
  const port = Number(digits)
  if (port > 65_535) return undefined
  if (isIPv4(host)) return { host, port }
  return isDomainName(host) ? { host: plainName(host), port } : undefined
}

export function formatHostPort({ host, port }: HostPort): string {
  return `${host}:${port}`
}
