import { searchClientHello } from './client-hello.ts'
import { needMore, noName, searchLimitBytes } from './name-search.ts'
import { searchRequestHead } from './request-head.ts'

/**
 * Finds the server name in the first bytes that a client sends: TLS (SNI) or HTTP/1 (Host).
 *
 * Threats: the bytes come from a sandbox, which can claim any name. A name is only a claim: code that allows a
 * connection by name must resolve and dial that name, not the address that the sandbox dialed. Input that two parsers
 * could read differently has no name. Parsing is bounded in size and takes linear time. Out of scope: later or
 * encrypted names (a second request, ECH), which are up to the server that was allowed.
 */
export type SniffResult =
  | { readonly kind: 'more' }
  | (ServerName & { readonly kind: 'name' })
  | { readonly kind: 'none' }

export interface ServerName {
  readonly name: string
  readonly protocol: 'tls' | 'http'
}

/** `bytes` are all bytes received so far. Call again with more bytes only after the result 'more'. */
export function sniffServerName(bytes: Buffer): SniffResult {
  if (bytes.length === 0) return needMore
  const protocol = bytes[0] === handshakeRecord ? 'tls' : 'http'
  const found = searches[protocol](bytes.subarray(0, searchLimitBytes))
  if (found.kind === 'more' && bytes.length >= searchLimitBytes) return noName
  return found.kind === 'name' ? { ...found, protocol } : found
}

const handshakeRecord = 22
const searches = { tls: searchClientHello, http: searchRequestHead }
