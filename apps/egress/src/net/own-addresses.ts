import { networkInterfaces } from 'node:os'

/** Addresses of this host, which sandboxes may not reach, whatever range they are from. */
export type OwnAddresses = () => ReadonlySet<string>

/**
 * A node has one interface for every sandbox, and sandboxes decide how often the list is needed. An address that the host
 * gets can be dialed for this long; the interfaces and addresses of sandboxes are closed by their range instead.
 */
const maxAgeMs = 1000

/** The addresses as they were at most a second ago. */
export function createOwnAddresses(
  read: typeof networkInterfaces = networkInterfaces,
  now: () => number = () => performance.now(),
): OwnAddresses {
  let addresses: ReadonlySet<string> = new Set()
  let readAt = -Infinity
  return () => {
    if (now() - readAt < maxAgeMs) return addresses
    const links = Object.values(read()).flatMap((link) => link ?? [])
    addresses = new Set(links.map(({ address }) => address))
    readAt = now()
    return addresses
  }
}
