/**
 * Where names lead.
 *
 * Threats: sandboxes choose when we ask, and for what, and somebody may send answers in the name of a name server. All
 * questions of one resolver that overlap go out from one port; who knows it has only 16 bits left to guess. So each
 * question has a resolver, and with it a port, of its own, and the same question is not asked twice at a time, or each
 * would be one more that a wrong answer could be for.
 */
import { Resolver } from 'node:dns/promises'

/** Fails for a name that has no address. */
export type Lookup = (name: string) => Promise<readonly string[]>

export function createLookup(nameservers: readonly string[]): Lookup {
  const underWay = new Map<string, Promise<readonly string[]>>()
  return (name) => {
    const before = underWay.get(name)
    if (before) return before
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    resolver.setServers(nameservers)
    const found = resolver.resolve4(name).finally(() => underWay.delete(name))
    underWay.set(name, found)
    return found
  }
}
