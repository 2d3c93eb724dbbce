import { networkInterfaces } from 'node:os'

/** Addresses of this host. Sandboxes may not reach them, whatever range they are in. */
export type HostAddresses = () => ReadonlySet<string>

/**
 * A node has one interface per sandbox, and sandboxes decide how often the list is read, so it is cached. A new address
 * of the host can be dialed for this long; sandbox interfaces are closed by their range instead.
 */
const maxAgeMs = 1000

/** Returns a function that reads the addresses at most once per second. */
export function createHostAddresses(
  read: typeof networkInterfaces = networkInterfaces,
  now: () => number = () => performance.now(),
): HostAddresses {
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
