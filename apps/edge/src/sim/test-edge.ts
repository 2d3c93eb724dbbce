import { createServer } from 'node:http'
import type { RequestListener, Server } from 'node:http'
import { connect } from 'node:net'
import type { Server as NetServer, Socket } from 'node:net'
import { silentLogger } from '@atoll/kit/log'
import type { EdgeConfig } from '../config.ts'
import type { FindSigner } from '../domain/signed-file.ts'
import type { Wake } from '../domain/wake.ts'
import { createEdge, edgeServerOptions } from '../edge.ts'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedIngress } from '@atoll/simulated-node/sandbox'

/** Starts an edge on a free port, with a simulated node. */
export async function startTestEdge(
  config: EdgeConfig = {},
  parts: {
    readonly findSigner?: FindSigner
    readonly wake?: Wake
    readonly wakeLimitMs?: number
    readonly maxRequests?: number
  } = {},
) {
  const started = new AsyncDisposableStack()
  const node = simulateNode()
  const edge = createEdge({ nodes: [node.transport], log: silentLogger, config, ...parts })
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

    /** Starts a server in the sandbox `id`, and returns its routing headers. */
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

/** Returns the sandbox's own host name, to use instead of the routing headers of `serve`. */
export function ownHost(routing: { 'Svc-Sandbox-Id': string; 'Svc-Sandbox-Port': string }) {
  return { Host: `${routing['Svc-Sandbox-Port']}-${routing['Svc-Sandbox-Id']}.atoll.test` }
}

/** A plain TCP client. */
export interface RawClient {
  readonly socket: Socket
  received(): string
  /** `open` until the peer ends or resets the connection. */
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
