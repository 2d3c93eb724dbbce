import { Agent } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Outside, Transform } from '../domain/way.ts'
import { cut } from './cut.ts'

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
 * One that was sent ahead waits until the answer to the one before is out.
 */
export interface Session {
  readonly transform: Transform
  readonly agent: Agent
  /** Calls `handle` when it is its turn, unless the connection ends before. False for more than anybody sends ahead. */
  begin(req: IncomingMessage, res: ServerResponse, handle: () => void): boolean
  /** No request is under way. */
  isIdle(): boolean
}

export function createSession(client: Socket, { transform, dial, ended }: Leaving): Session {
  /** Requests and responses that are not over. */
  const open = new Set<IncomingMessage | ServerResponse>()
  const waiting: Turn[] = []
  let current: Turn | undefined
  let isCutOff = false

  function close(turn: Turn, message: IncomingMessage | ServerResponse): void {
    open.delete(message)
    settle()
    // Not at once: who else hears of the end may close the connection for it.
    if (turn === current && !turn.messages.some((each) => open.has(each))) queueMicrotask(goOn)
  }

  function settle(): void {
    if (isCutOff && open.size === 0) client.destroySoon()
  }

  /** The agent would not see to it: it counts a connection only once it is there. */
  function goOn(): void {
    current = waiting.shift()
    if (client.destroyed || client.writableEnded) return void (waiting.length = 0)
    try {
      current?.handle()
    } catch {
      cut(client)
    }
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
    begin(req, res, handle) {
      if (open.size >= mostAhead) return false
      const turn = { messages: [req, res], handle }
      for (const message of turn.messages) {
        open.add(message)
        message.once('close', () => close(turn, message))
      }
      waiting.push(turn)
      if (!current) goOn()
      return true
    },
    isIdle: () => open.size === 0,
  }
}

interface Turn {
  readonly messages: readonly (IncomingMessage | ServerResponse)[]
  readonly handle: () => void
}

type Connected = (error: Error | null, socket: Socket) => void

const keepAliveMs = 60_000
/** Of requests and their responses: nobody may have us keep more than a few. */
const mostAhead = 16
