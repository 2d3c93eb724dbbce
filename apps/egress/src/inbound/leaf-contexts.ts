/**
 * The certificates that sandboxes are shown, each ready for use.
 *
 * Threats: a sandbox with a wildcard can ask for as many names as it likes. Each costs about a millisecond and 30 KB. Only
 * as many are kept as memory is to spare for, and of one sandbox so few that others keep theirs; how often it can ask is
 * limited by the rate of its connections.
 */
import { constants } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { SecureContext } from 'node:tls'
import { certify } from '../domain/authority.ts'
import type { Authority } from '../domain/authority.ts'

export type LeafContexts = (authority: Authority, name: string) => SecureContext

interface Kept {
  readonly context: SecureContext
  readonly madeAt: number
  /** Its certificate, by which it is told from others. */
  readonly authority: string
}

export function createLeafContexts(
  { limit = 512, limitOfEach = 64 } = {},
  now = () => new Date(),
): LeafContexts {
  /** In the order of their last use. */
  const kept = new Map<string, Kept>()

  function makeRoom(authority: string): void {
    const own = [...kept].filter(([, entry]) => entry.authority === authority)
    const [oldest] = own.length >= limitOfEach ? own : kept
    if (oldest && (own.length >= limitOfEach || kept.size >= limit)) kept.delete(oldest[0])
  }

  return (authority, name) => {
    const key = `${name} ${authority.certificate}`
    const date = now()
    const before = kept.get(key)
    kept.delete(key)
    const isFresh = before && date.getTime() - before.madeAt < longestUseMs
    const entry = isFresh
      ? before
      : {
          context: createContext(authority, name, date),
          madeAt: date.getTime(),
          authority: authority.certificate,
        }
    if (!before) makeRoom(authority.certificate)
    kept.set(key, entry)
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
