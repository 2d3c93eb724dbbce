/**
 * Resolves names to IPv4 addresses.
 *
 * Threats: sandboxes choose when and for what we query, and an attacker may send forged answers. Overlapping queries of
 * one resolver share a port; an attacker who knows the port must guess only a 16-bit ID. So each query gets its own
 * resolver and port. The same name is never queried twice at a time, since each query would be another chance for a
 * forged answer.
 */
import { Resolver } from 'node:dns/promises'

/** Rejects if the name has no address. */
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
