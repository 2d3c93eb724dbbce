import { createServer } from 'node:http'
import type { RequestListener, Server } from 'node:http'
import { connect } from 'node:net'
import type { Server as NetServer, Socket } from 'node:net'
import { silentLogger } from '@atoll/kit/log'
import type { EdgeConfig } from '../config.ts'
import type { FindSigner } from '../domain/signed-file.ts'
import type { Wake } from '../domain/wake.ts'
import { createEdge, edgeServerOptions } from '../edge.ts'
import { simulatedNode } from './node.ts'
import type { SimulatedIngress } from './node.ts'

/** An edge on a port of its own, in front of a simulated node. Undone by `close`. */
export async function startSetting(
  config: EdgeConfig = {},
  parts: {
    readonly findSigner?: FindSigner
    readonly wake?: Wake
    readonly wakeLimitMs?: number
    readonly mostRequests?: number
  } = {},
) {
  const started = new AsyncDisposableStack()
  const node = simulatedNode()
  const edge = createEdge({ node: node.transport, log: silentLogger, config, ...parts })
  started.defer(() => edge.close())
  const server = createServer(edgeServerOptions, edge.handle)
  server.on('upgrade', edge.upgrade)
  const edgePort = await listen(server, '127.0.0.1', started)

  return {
    node,
    edge,
    edgePort,
    url: `http://127.0.0.1:${edgePort}`,
    close: () => started.disposeAsync(),

    /** A program that listens in the sandbox `id`; answers the headers that lead there. */
    async serve(
      id: string,
      program: RequestListener | Server | NetServer,
      address = '127.0.0.2',
      ingress?: (port: number) => SimulatedIngress,
    ) {
      const inside = typeof program === 'function' ? createServer(program) : program
      const port = await listen(inside, address, started)
      node.start(id, address, ingress?.(port))
      return { 'Svc-Sandbox-Id': id, 'Svc-Sandbox-Port': String(port) }
    },
  }
}

/** The host name of the sandbox itself, to be used instead of the routing headers that `serve` answers. */
export function ownHost(routing: { 'Svc-Sandbox-Id': string; 'Svc-Sandbox-Port': string }) {
  return { Host: `${routing['Svc-Sandbox-Port']}-${routing['Svc-Sandbox-Id']}.atoll.test` }
}

/** The bytes of one connection, as they arrive. */
export interface RawClient {
  readonly socket: Socket
  received(): string
  /** 'open' until the other side ended it cleanly or reset it. */
  state(): 'open' | 'ended' | 'reset'
}

export function rawClient(port: number, text: string): RawClient {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  let state: 'open' | 'ended' | 'reset' = 'open'
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => (received += chunk))
  socket.on('end', () => (state = 'ended'))
  socket.on('error', () => (state = 'reset'))
  socket.write(text, 'latin1')
  return { socket, received: () => received, state: () => state }
}

async function listen(
  server: Server | NetServer,
  address: string,
  started: AsyncDisposableStack,
): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  started.defer(async () => {
    const stopped = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await stopped
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('not listening on TCP')
  return bound.port
}
