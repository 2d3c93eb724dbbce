/**
 * Dials upstream servers from the host. Resolves names itself, because a sandbox could claim a name for any address,
 * and never dials an address that is closed to sandboxes.
 *
 * Threats: the owner of a name controls how many addresses it has, and the creator of a sandbox chooses its proxy.
 * Addresses are limited in number, connections and handshakes in time.
 */
import { once } from 'node:events'
import { connect, isIPv4 } from 'node:net'
import type { Socket } from 'node:net'
import { setImmediate as nextEventLoopTurn } from 'node:timers/promises'
import { contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import { SocksClient } from 'socks'
import { decide } from '../domain/egress-rules.ts'
import type { CompiledRules } from '../domain/egress-rules.ts'
import type { Dialer, UpstreamConnection } from '../domain/route.ts'
import { createLookup } from './lookup.ts'
import { createHostAddresses } from './host-addresses.ts'
import type { HostAddresses } from './host-addresses.ts'

export interface DialerParts {
  readonly nameservers: readonly string[]
  readonly closedRanges: readonly string[]
  readonly hostAddresses?: HostAddresses
}

export function createDialer(parts: DialerParts): Dialer {
  const resolveAllowed = createAllowedLookup(parts)
  return {
    async dial({ verdict, proxy, transform }, { address, port }, ended) {
      const signal = AbortSignal.any([ended, AbortSignal.timeout(dialTimeoutMs)])
      const name = verdict.kind === 'byName' ? verdict.name : transform?.name
      const endpoint = { host: name ?? address, port }
      if (!proxy) {
        const addresses = await resolveAllowed(endpoint.host, transform?.within)
        const socket = await connectToAny(addresses, port, signal)
        return { socket, initialBytes: Buffer.alloc(0) }
      }
      // The proxy does not know the rules, so it gets a name only if the name itself is allowed.
      const usable = transform?.within && (await resolveAllowed(endpoint.host, transform.within))
      const host = usable?.find((each) => each === address) ?? usable?.[0] ?? endpoint.host
      const [proxyHost = '', proxyPort = ''] = proxy.address.split(':')
      const proxyAddresses = await resolveAllowed(proxyHost)
      const socket = await connectToAny(proxyAddresses, Number(proxyPort), signal)
      return await connectThroughProxy(
        socket,
        { ...proxy, host: proxyHost },
        { host, port },
        signal,
      )
    },
  }
}

/** Resolves a host to the addresses that sandboxes may reach. Throws if there are none. */
function createAllowedLookup(parts: DialerParts) {
  const lookup = createLookup(parts.nameservers)
  const closed = toRanges(parts.closedRanges)
  const hostAddresses = parts.hostAddresses ?? createHostAddresses()
  return async (host: string, within?: CompiledRules): Promise<string[]> => {
    const found = isIPv4(host) ? [host] : await lookup(host)
    const ownAddresses = hostAddresses()
    const usable = found.slice(0, maxCheckedAddresses).filter((address) => {
      const number = toNumber(address)
      if (number === undefined || contains(closed, number) || ownAddresses.has(address))
        return false
      return !within || decide(within, address, undefined).kind === 'byAddress'
    })
    if (usable.length === 0)
      throw new Error(`${host} has no IPv4 address that this sandbox may reach`)
    return usable
  }
}

async function connectToAny(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  let failure: unknown
  for (const address of addresses.slice(0, maxDialedAddresses)) {
    signal.throwIfAborted()
    try {
      const timeout = AbortSignal.timeout(addressTimeoutMs)
      return await open(address, port, AbortSignal.any([signal, timeout]))
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

interface HostPort {
  readonly host: string
  readonly port: number
}

async function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  // Permanent listener: an 'error' event between two awaits must not end the process. Callers learn of errors
  // otherwise.
  socket.on('error', () => {})
  try {
    await once(socket, 'connect', { signal })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Sends a name to the proxy unresolved: the name is allowed, and the proxy resolves it. */
async function connectThroughProxy(
  socket: Socket,
  proxy: { readonly host: string; readonly username?: string; readonly password?: string },
  destination: HostPort,
  signal: AbortSignal,
): Promise<UpstreamConnection> {
  const { username, password } = proxy
  const abort = () => void socket.destroy()
  signal.addEventListener('abort', abort)
  socket.once('end', abort) // the library would keep waiting
  try {
    await SocksClient.createConnection({
      command: 'connect',
      proxy: {
        host: proxy.host,
        port: 1, // unused: the socket is already connected
        type: 5,
        ...(username !== undefined && { userId: username }),
        ...(password !== undefined && { password }),
      },
      destination,
      existing_socket: socket,
      timeout: dialTimeoutMs,
    })
    return { socket, initialBytes: await readPendingBytes(socket) }
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    socket.off('end', abort)
    signal.removeEventListener('abort', abort)
  }
}

/** Collects bytes that arrived with the proxy's last reply. The library emits them one event loop turn later. */
async function readPendingBytes(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  const keep = (piece: Buffer) => void pieces.push(piece)
  socket.on('data', keep)
  await nextEventLoopTurn()
  socket.pause()
  socket.off('data', keep)
  return Buffer.concat(pieces)
}

const dialTimeoutMs = 30_000
/** Limit per address; then the next address is tried. */
const addressTimeoutMs = 8000
/** Limit on the allowed addresses of one name. */
const maxDialedAddresses = 3
const maxCheckedAddresses = 64
