/**
 * Cache of the TLS contexts, with their certificates, that are presented to sandboxes.
 *
 * Threats: a sandbox with a wildcard rule can ask for any number of names. Each costs about a millisecond and 30 KB.
 * The cache is limited in total, and per sandbox so that one cannot evict the contexts of others. The rate limit on
 * terminated connections bounds the work.
 */
import { constants } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { SecureContext } from 'node:tls'
import { issueCertificate } from '../domain/certificates/authority.ts'
import type { Authority } from '@atoll/contracts/network/rules'

export type TlsContexts = (authority: Authority, name: string) => SecureContext

interface CachedContext {
  readonly context: SecureContext
  readonly madeAt: number
  /** Certificate of the CA that issued this one. */
  readonly authority: string
}

export function createTlsContexts(
  { limit = 512, limitPerAuthority = 64 } = {},
  now = () => new Date(),
): TlsContexts {
  /** Ordered by last use. */
  const cache = new Map<string, CachedContext>()

  function evict(authority: string): void {
    const own = [...cache].filter(([, entry]) => entry.authority === authority)
    const [oldest] = own.length >= limitPerAuthority ? own : cache
    if (oldest && (own.length >= limitPerAuthority || cache.size >= limit)) cache.delete(oldest[0])
  }

  return (authority, name) => {
    const key = `${name} ${authority.certificate}`
    const date = now()
    const existing = cache.get(key)
    cache.delete(key)
    const isFresh = existing && date.getTime() - existing.madeAt < maxAgeMs
    const entry = isFresh
      ? existing
      : {
          context: createContext(authority, name, date),
          madeAt: date.getTime(),
          authority: authority.certificate,
        }
    if (!existing) evict(authority.certificate)
    cache.set(key, entry)
    return entry.context
  }
}

function createContext(authority: Authority, name: string, now: Date): SecureContext {
  const { certificate, key } = issueCertificate(authority, name, now)
  return createSecureContext({
    cert: certificate,
    key,
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION, // renegotiation costs the server more than the client
  })
}

/** Far less than the validity of the certificates. */
const maxAgeMs = 7 * 86_400_000
