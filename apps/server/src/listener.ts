import { createServer } from 'node:http'
import type { RequestListener, Server, ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import { Fault } from '@atoll/kit/fault'
import { explainClientErrors } from './client-error.ts'
import { formatListenAddress } from './listen-address.ts'
import type { ListenAddress } from './listen-address.ts'

export interface Listener {
  readonly server: Server
  /** With the port that was really taken. */
  readonly address: ListenAddress
  /** Takes no new connection and lets idle ones go. */
  stop(): void
  /** Ends all connections, also those that were upgraded. */
  close(): Promise<void>
}

/** `setting` is the name of the variable that a person changes when the address is taken. */
export async function startListener(
  given: { readonly setting: string; readonly address: ListenAddress },
  options: ServerOptions,
  handle: RequestListener,
): Promise<Listener> {
  const server = createServer(options, handle)
  explainClientErrors(server)
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const { host, port } = given.address
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(toFault(error, given)))
    server.listen({ host, port }, resolve)
  })
  const bound = server.address()
  const taken = bound !== null && typeof bound === 'object' ? bound.port : port
  const closed = Promise.withResolvers<void>()
  server.once('close', closed.resolve)
  const stop = () => {
    if (server.listening) server.close()
  }
  return {
    server,
    address: { host, port: taken },
    stop,
    async close() {
      stop()
      for (const socket of sockets) socket.destroy()
      await closed.promise
    },
  }
}

function toFault(
  error: NodeJS.ErrnoException,
  { setting, address }: { readonly setting: string; readonly address: ListenAddress },
): unknown {
  const place = formatListenAddress(address)
  const other = formatListenAddress({ ...address, port: (address.port % 65_535) + 1 })
  const advice = `choose another address with ${setting}, for example ${setting}=${other}`
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: `${place} is in use by another program. End that program, or ${advice}`,
    EADDRNOTAVAIL: `${place} is not an address of this machine: ${advice}`,
    ENOTFOUND: `${address.host} is not a name that this machine knows: ${advice}`,
    EACCES: `This user may not listen on ${place}: ${advice}`,
  }
  const message = reasons[error.code ?? '']
  return message ? new Fault('conflict', 'cannot_listen', message, { cause: error }) : error
}
