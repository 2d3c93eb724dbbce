import { Agent } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Outside, Transform } from '../domain/way.ts'

/** How a connection that is looked into goes on. */
export interface Leaving {
  readonly transform: Transform
  /** To the server of the name; with TLS if the sandbox speaks it. */
  dial(): Promise<Outside>
  /** Aborted when the connection of the sandbox is closed. */
  readonly ended: AbortSignal
}

/**
 * The requests of one connection. They share one connection to the server, one after the other, and when that is closed
 * between two requests so is the sandbox's: clients know what to do about a connection that ends while it is not in use.
 */
export interface Session {
  readonly transform: Transform
  readonly agent: Agent
  /** False for more requests than anybody sends ahead. */
  begin(req: IncomingMessage, res: ServerResponse): boolean
  /** No request is under way. */
  isIdle(): boolean
}

export function createSession(client: Socket, { transform, dial, ended }: Leaving): Session {
  /** Requests and responses that are not over. */
  const open = new Set<IncomingMessage | ServerResponse>()
  let isCutOff = false

  function settle(): void {
    if (isCutOff && open.size === 0) client.destroySoon()
  }

  async function connect(): Promise<Socket> {
    const { socket, first } = await dial()
    if (first.length > 0) socket.unshift(first)
    socket.allowHalfOpen = false // or one that the server has ended would seem usable
    socket.setKeepAlive(true, keepAliveMs)
    isCutOff = false
    socket.once('close', () => {
      isCutOff = true
      settle()
    })
    return socket
  }

  /** A failure comes with a socket that is none, since the type of `done` knows no failure without. */
  async function connectFor(done: Connected): Promise<void> {
    try {
      const socket = await connect()
      done(null, socket)
    } catch (error) {
      done(error instanceof Error ? error : new Error('not connected'), new Socket())
    }
  }

  const agent = Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), {
    createConnection: (_options: unknown, done?: Connected) => {
      if (done) void connectFor(done).catch(() => {})
      return undefined
    },
  })
  ended.addEventListener('abort', () => agent.destroy())
  return {
    transform,
    agent,
    begin(req, res) {
      if (open.size >= mostAhead) return false
      for (const message of [req, res]) {
        open.add(message)
        message.once('close', () => {
          open.delete(message)
          settle()
        })
      }
      return true
    },
    isIdle: () => open.size === 0,
  }
}

type Connected = (error: Error | null, socket: Socket) => void

const keepAliveMs = 60_000
/** Of requests and their responses: nobody may have us keep more than a few. */
const mostAhead = 16
