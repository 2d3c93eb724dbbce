/**
 * Connections from the host to where a sandbox may go. A name is looked up here and not by the sandbox, which could say it
 * of any address; whatever an address is found by, one that is closed to sandboxes is not dialed.
 */
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, isIPv4 } from 'node:net'
import type { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { SocksClient } from 'socks'
import { contains, toNumber, toRanges } from '../domain/address-ranges.ts'
import type { Dialer } from '../domain/way.ts'

export function createDialer(parts: {
  readonly nameservers: readonly string[]
  readonly closedRanges: readonly string[]
}): Dialer {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  resolver.setServers(parts.nameservers)
  const closed = toRanges(parts.closedRanges)
  const isOpen = (address: string) => {
    const number = toNumber(address)
    return number !== undefined && !contains(closed, number) && !isOwn(address)
  }

  async function addressesOf(host: string): Promise<string[]> {
    const found = isIPv4(host) ? [host] : await resolver.resolve4(host)
    const usable = found.filter(isOpen).slice(0, mostAddresses)
    if (usable.length === 0) throw new Error(`${host} is nowhere that a sandbox may go`)
    return usable
  }

  async function reach(host: string, port: number, signal: AbortSignal): Promise<Socket> {
    let failure: unknown
    for (const address of await addressesOf(host)) {
      signal.throwIfAborted()
      try {
        return await open(address, port, signal)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  return {
    async dial({ verdict, proxy }, { address, port }, signal) {
      const host = verdict.kind === 'byName' ? verdict.name : address
      if (!proxy) return await reach(host, port, signal)
      const [proxyHost = '', proxyPort = ''] = proxy.address.split(':')
      const socket = await reach(proxyHost, Number(proxyPort), signal)
      try {
        return await throughProxy(socket, { ...proxy, host: proxyHost }, { host, port })
      } catch (error) {
        socket.destroy()
        throw error
      }
    },
  }
}

/** Public addresses of the host are no less closed to sandboxes. */
function isOwn(address: string): boolean {
  const links = Object.values(networkInterfaces()).flatMap((link) => link ?? [])
  return links.some((own) => own.address === address)
}

async function open(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true })
  await once(socket, 'connect', { signal: AbortSignal.any([signal, limit(connectLimitMs)]) }).catch(
    (error: unknown) => {
      socket.destroy()
      throw error
    },
  )
  return socket
}

/** A name goes to the proxy as a name, which looks it up by itself. */
async function throughProxy(
  socket: Socket,
  proxy: { readonly host: string; readonly username?: string; readonly password?: string },
  destination: { readonly host: string; readonly port: number },
): Promise<Socket> {
  const { username, password } = proxy
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
    timeout: connectLimitMs,
    set_tcp_nodelay: true,
  })
  return socket
}

function limit(ms: number): AbortSignal {
  return AbortSignal.timeout(ms)
}

const connectLimitMs = 30_000
/** Of one name. */
const mostAddresses = 3
