/**
 * Connections from the host to where a sandbox may go. A name is looked up here and not by the sandbox, which could say it
 * of any address; whatever an address is found by, one that is closed to sandboxes is not dialed.
 *
 * Threats: who owns a name says how many addresses it has, and a proxy is whoever a sandbox's creator wants. Of neither more
 * is looked at than a little, nor longer than a limit.
 */
import { once } from 'node:events'
import { connect, isIPv4 } from 'node:net'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { contains, toNumber, toRanges } from '@atoll/kit/address-ranges'
import { SocksClient } from 'socks'
import { decide } from '../domain/destination.ts'
import type { CompiledRules } from '../domain/destination.ts'
import type { Dialer, Outside } from '../domain/way.ts'
import { createLookup } from './lookup.ts'
import { createOwnAddresses } from './own-addresses.ts'
import type { OwnAddresses } from './own-addresses.ts'

export function createDialer(parts: {
  readonly nameservers: readonly string[]
  readonly closedRanges: readonly string[]
  readonly ownAddresses?: OwnAddresses
}): Dialer {
  const lookup = createLookup(parts.nameservers)
  const closed = toRanges(parts.closedRanges)
  const ownAddresses = parts.ownAddresses ?? createOwnAddresses()

  async function addressesOf(host: string, within?: CompiledRules): Promise<string[]> {
    const found = isIPv4(host) ? [host] : await lookup(host)
    const own = ownAddresses()
    const usable = found.slice(0, mostLookedAt).filter((address) => {
      const number = toNumber(address)
      if (number === undefined || contains(closed, number) || own.has(address)) return false
      return !within || decide(within, address, undefined).kind === 'byAddress'
    })
    if (usable.length === 0) throw new Error(`${host} is nowhere that a sandbox may go`)
    return usable
  }

  async function reach(
    { host, port }: Place,
    signal: AbortSignal,
    within?: CompiledRules,
  ): Promise<Socket> {
    let failure: unknown
    for (const address of (await addressesOf(host, within)).slice(0, mostAddresses)) {
      signal.throwIfAborted()
      try {
        return await open(
          address,
          port,
          AbortSignal.any([signal, AbortSignal.timeout(addressLimitMs)]),
        )
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  return {
    async dial({ verdict, proxy, transform }, { address, port }, ended) {
      const signal = AbortSignal.any([ended, AbortSignal.timeout(limitMs)])
      const name = verdict.kind === 'byName' ? verdict.name : transform?.name
      const place = { host: name ?? address, port }
      if (!proxy) {
        const socket = await reach(place, signal, transform?.within)
        return { socket, first: Buffer.alloc(0) }
      }
      // By its name only what is allowed by its name: the proxy knows nothing of the rules.
      const usable = transform?.within && (await addressesOf(place.host, transform.within))
      const host = usable?.find((each) => each === address) ?? usable?.[0] ?? place.host
      const [proxyHost = '', proxyPort = ''] = proxy.address.split(':')
      const socket = await reach({ host: proxyHost, port: Number(proxyPort) }, signal)
      return await throughProxy(socket, { ...proxy, host: proxyHost }, { host, port }, signal)
    },
  }
}

interface Place {
  readonly host: string
  readonly port: number
}

async function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  // For good: who waits for it hears of it, and between two of them it must not end the process.
  socket.on('error', () => {})
  try {
    await once(socket, 'connect', { signal })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** A name, which only one that is allowed may be, goes to the proxy as a name: it looks it up by itself. */
async function throughProxy(
  socket: Socket,
  proxy: { readonly host: string; readonly username?: string; readonly password?: string },
  destination: Place,
  signal: AbortSignal,
): Promise<Outside> {
  const { username, password } = proxy
  const giveUp = () => void socket.destroy()
  signal.addEventListener('abort', giveUp)
  socket.once('end', giveUp) // the library would wait on
  try {
    await SocksClient.createConnection({
      command: 'connect',
      proxy: {
        host: proxy.host,
        port: 1, // the connection is there already
        type: 5,
        ...(username !== undefined && { userId: username }),
        ...(password !== undefined && { password }),
      },
      destination,
      existing_socket: socket,
      timeout: limitMs,
    })
    return { socket, first: await whatCameWithIt(socket) }
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    socket.off('end', giveUp)
    signal.removeEventListener('abort', giveUp)
  }
}

/** The library says one turn later what came with the last word of the proxy, as an event that nobody else would hear. */
async function whatCameWithIt(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  const keep = (piece: Buffer) => void pieces.push(piece)
  socket.on('data', keep)
  await turn()
  socket.pause()
  socket.off('data', keep)
  return Buffer.concat(pieces)
}

const limitMs = 30_000
/** Of several, the next is tried then. */
const addressLimitMs = 8000
/** Of one name, of those that are usable. */
const mostAddresses = 3
const mostLookedAt = 64
