import { searchClientHello } from './client-hello.ts'
import { more, none, searchLimitBytes } from './name-search.ts'
import { searchRequestHead } from './request-head.ts'

/**
 * The name that a connection is for, by what its client says first: TLS (SNI) or HTTP/1 (Host).
 *
 * Threats: the bytes are a sandbox's, and say what suits it. A name is only a wish, therefore: whoever approves it has
 * to dial it, and not the address that the sandbox dialled. Whatever two readers could understand differently has no
 * name. What is read is limited, and read in one pass. Not seen here: what an approved server does with other names that
 * come later or encrypted (a second request, ECH); it is in that server's hands.
 */
export type FirstBytes =
  | { readonly kind: 'more' }
  | (Named & { readonly kind: 'name' })
  | { readonly kind: 'none' }

export interface Named {
  readonly name: string
  readonly protocol: 'tls' | 'http'
}

/** `bytes` are all that came so far. To be asked again with more of them only after 'more'. */
export function readName(bytes: Buffer): FirstBytes {
  if (bytes.length === 0) return more
  const protocol = bytes[0] === handshakeRecord ? 'tls' : 'http'
  const found = searches[protocol](bytes.subarray(0, searchLimitBytes))
  if (found.kind === 'more' && bytes.length >= searchLimitBytes) return none
  return found.kind === 'name' ? { ...found, protocol } : found
}

const handshakeRecord = 22
const searches = { tls: searchClientHello, http: searchRequestHead }
