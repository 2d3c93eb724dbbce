import type { Authority } from './authority.ts'
import { matchesName } from './name-pattern.ts'

/** What is changed in the requests of a sandbox on their way out. */
export interface Transforms {
  readonly domains: readonly DomainHeaders[]
  /** By which this process is certified to the sandbox as the server of those names. */
  readonly authority: Authority
}

export interface DomainHeaders {
  /** As name-pattern.ts has it. */
  readonly pattern: string
  /** Set in requests, in place of others of the same name. Secrets: nobody but the server is told. */
  readonly headers: Readonly<Record<string, string>>
}

/** Of the name itself if there are any, else of what is the closest above it; never of several. */
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
