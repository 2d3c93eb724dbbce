/**
 * The certificates that sandboxes are shown, each ready for use.
 *
 * Threats: a sandbox with a wildcard can ask for as many names as it likes. Each costs about a millisecond and 30 KB, so
 * only as many are kept as memory is to spare for, and the doorway limits how many connections can ask.
 */
import { constants } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { SecureContext } from 'node:tls'
import { certify } from '../domain/authority.ts'
import type { Authority } from '../domain/authority.ts'

export type LeafContexts = (authority: Authority, name: string) => SecureContext

export function createLeafContexts(limit = 512, now = () => new Date()): LeafContexts {
  /** In the order of their last use. */
  const kept = new Map<string, { readonly context: SecureContext; readonly madeAt: number }>()

  return (authority, name) => {
    const key = `${name} ${authority.certificate}`
    const date = now()
    const before = kept.get(key)
    const isFresh = before && date.getTime() - before.madeAt < longestUseMs
    const entry = isFresh
      ? before
      : { context: createContext(authority, name, date), madeAt: date.getTime() }
    kept.delete(key)
    kept.set(key, entry)
    for (const oldest of kept.keys()) {
      if (kept.size <= limit) break
      kept.delete(oldest)
    }
    return entry.context
  }
}

function createContext(authority: Authority, name: string, now: Date): SecureContext {
  const { certificate, key } = certify(authority, name, now)
  return createSecureContext({
    cert: certificate,
    key,
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION, // costs us more than the client
  })
}

/** Far less than they are valid for. */
const longestUseMs = 7 * 86_400_000
