import type { Authority } from './certificates/authority.ts'
import { matchesName } from './name-pattern.ts'

/** Header rules of a sandbox, and the CA that its connections are terminated with. */
export interface Transforms {
  readonly domains: readonly DomainHeaders[]
  /** Issues the certificates with which the proxy poses as those servers towards the sandbox. */
  readonly authority: Authority
}

export interface DomainHeaders {
  /** Pattern as name-pattern.ts defines it. */
  readonly pattern: string
  /** Replace request headers of the same names. The values are secrets: only the server may receive them. */
  readonly headers: Readonly<Record<string, string>>
}

/** Returns the headers of the exact name, else of the longest matching wildcard. Rules are never combined. */
export function headersFor(
  name: string,
  domains: readonly DomainHeaders[],
): DomainHeaders['headers'] | undefined {
  const matching = domains.filter(({ pattern }) => matchesName(name, [pattern]))
  const [closest] = matching.toSorted(
    (a, b) => closeness(b.pattern, name) - closeness(a.pattern, name),
  )
  return closest?.headers
}

function closeness(pattern: string, name: string): number {
  return pattern === name ? Infinity : pattern.length
}
