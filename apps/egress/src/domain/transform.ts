import type { DomainHeaders } from '@atoll/contracts/network/rules'
import { matchesName } from './name-pattern.ts'

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
