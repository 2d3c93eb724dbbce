import { Agent } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { UpstreamConnection, Transform } from '../domain/route.ts'
import { resetConnection } from './reset-connection.ts'

/** Upstream side of a terminated connection. */
export interface Upstream {
  readonly transform: Transform
  /** Connects to the upstream server, with TLS if the sandbox uses TLS. */
  dial(): Promise<UpstreamConnection>
  /** Aborted when the connection of the sandbox closes. */
  readonly ended: AbortSignal
}

/**
 * Requests of one terminated connection. They share one upstream connection, one request at a time. If the server
 * closes it between two requests, the sandbox's connection is closed too: clients know how to handle a keep-alive
 * connection that ends while idle. Pipelined requests wait for the response to the previous request.
 */
export interface Session {
  readonly transform: Transform
  readonly agent: Agent
  /**
   * Calls `handle` when all earlier exchanges are done, unless the connection ends first. Returns false if too many are
   * pipelined.
   */
  enqueue(req: IncomingMessage, res: ServerResponse, handle: () => void): boolean
  /** Whether no request is in progress. */
  isIdle(): boolean
}

export function createSession(client: Socket, { transform, dial, ended }: Upstream): Session {
  /** Unfinished requests and responses. */
  const open = new Set<IncomingMessage | ServerResponse>()
  const waiting: Exchange[] = []
  let current: Exchange | undefined
  let isUpstreamClosed = false

  function finish(exchange: Exchange, message: IncomingMessage | ServerResponse): void {
    open.delete(message)
    closeWhenIdle()
    // Deferred, because other listeners of this event may close the connection.
    if (exchange === current && !exchange.messages.some((each) => open.has(each)))
      queueMicrotask(startNext)
  }

  function closeWhenIdle(): void {
    if (isUpstreamClosed && open.size === 0) client.destroySoon()
  }

  /**
   * Starts the next exchange. The agent's `maxSockets` does not help, because it counts only established connections.
   */
  function startNext(): void {
    current = waiting.shift()
    if (client.destroyed || client.writableEnded) return void (waiting.length = 0)
    try {
      current?.handle()
    } catch {
      resetConnection(client)
    }
  }

  const agent = createUpstreamAgent(dial, {
    onOpen: () => (isUpstreamClosed = false),
    onClose() {
      isUpstreamClosed = true
      closeWhenIdle()
    },
  })
  ended.addEventListener('abort', () => agent.destroy())
  return {
    transform,
    agent,
    enqueue(req, res, handle) {
      if (open.size >= maxOpenMessages) return false
      const exchange = { messages: [req, res], handle }
      for (const message of exchange.messages) {
        open.add(message)
        message.once('close', () => finish(exchange, message))
      }
      waiting.push(exchange)
      if (!current) startNext()
      return true
    },
    isIdle: () => open.size === 0,
  }
}

interface Exchange {
  readonly messages: readonly (IncomingMessage | ServerResponse)[]
  readonly handle: () => void
}

/** Agent whose only connection at a time comes from `dial`. */
function createUpstreamAgent(
  dial: Upstream['dial'],
  { onOpen, onClose }: { readonly onOpen: () => void; readonly onClose: () => void },
): Agent {
  async function connect(): Promise<Socket> {
    const { socket, initialBytes } = await dial()
    if (initialBytes.length > 0) socket.unshift(initialBytes)
    socket.allowHalfOpen = false // otherwise a connection that the server has ended would look usable
    socket.setKeepAlive(true, keepAliveMs)
    onOpen()
    socket.once('close', onClose)
    return socket
  }

  /** The type of `done` requires a socket even for failures, so an unconnected one is passed. */
  async function connectFor(done: OnConnected): Promise<void> {
    try {
      const socket = await connect()
      done(null, socket)
    } catch (error) {
      const failure =
        error instanceof Error ? error : new Error('Cannot connect to the upstream server')
      done(failure, new Socket())
    }
  }

  return Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
    createConnection: (_options: unknown, done?: OnConnected) => {
      if (done) void connectFor(done).catch(() => {})
      return undefined
    },
  })
}

type OnConnected = (error: Error | null, socket: Socket) => void

const keepAliveMs = 60_000
/** Limit on unfinished requests and responses together. */
const maxOpenMessages = 16
