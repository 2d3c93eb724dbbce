/**
 * The connections of clients, in all and of each client, within fixed numbers.
 *
 * Threats: a client without credentials opens connections until no file descriptor is left for the store, the log or other
 * clients. A full server therefore makes room for each new connection. It ends one on which it waits for the client: first
 * the oldest that has not sent the head of a request yet, then the one that has been idle for longest after an answer, then
 * one that does not take its answer. A connection is refused only while all others have requests that the server works on,
 * and those are never ended.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clientOf } from './client-address.ts'

export interface ConnectionLimits {
  readonly mostConnections: number
  /** Does not apply to loopback: a reverse proxy there carries many clients. */
  readonly mostPerClient: number
}

export interface Connections {
  /** Counts a new connection. Ends another one, or this one, when there are too many. */
  add(socket: Socket): void
  /** The head of a request has arrived on this connection, and the server works until the answer is out. */
  begin(socket: Socket, answer: ServerResponse): void
  /** The connection no longer speaks HTTP: it is kept until it ends. */
  upgrade(socket: Socket): void
  destroyAll(): void
}

/** `identify` names the client at an address: `loopback` is the one without a limit of its own. */
export function createConnections(limits: ConnectionLimits, identify = clientOf): Connections {
  const all = createGroup()
  const clients = new Map<string, Group>()
  const connections = new Map<Socket, Connection>()

  return {
    add(socket) {
      const address = identify(socket.remoteAddress ?? '')
      const own = address === 'loopback' ? undefined : (clients.get(address) ?? createGroup())
      const full =
        own && sizeOf(own) >= limits.mostPerClient
          ? own
          : sizeOf(all) >= limits.mostConnections && all
      if (full) {
        const victim = findWaiting(full)
        if (!victim) return refuse(socket)
        remove(victim)
        // A reset frees the descriptor and all that the kernel keeps for the connection at once.
        victim.socket.resetAndDestroy()
      }
      if (own) clients.set(address, own)
      const groups = own ? [all, own] : [all]
      const connection: Connection = { socket, address, groups, state: 'new', answers: [] }
      connections.set(socket, connection)
      for (const group of groups) group.new.add(connection)
      socket.once('close', () => remove(connection))
    },

    begin(socket, answer) {
      const connection = connections.get(socket)
      if (!connection) return
      connection.answers.push(answer)
      move(connection, 'busy')
      answer.once('close', () => {
        connection.answers.splice(connection.answers.indexOf(answer), 1)
        if (connection.answers.length === 0) move(connection, 'idle')
      })
    },

    upgrade(socket) {
      const connection = connections.get(socket)
      if (connection) move(connection, 'busy')
    },

    destroyAll() {
      for (const socket of connections.keys()) socket.destroy()
    },
  }

  function remove(connection: Connection): void {
    const { socket, address, groups, state } = connection
    if (!connections.delete(socket)) return
    for (const group of groups) group[state].delete(connection)
    const own = clients.get(address)
    if (own && sizeOf(own) === 0) clients.delete(address)
  }

  function move(connection: Connection, state: State): void {
    if (!connections.has(connection.socket)) return
    for (const group of connection.groups) {
      group[connection.state].delete(connection)
      group[state].add(connection)
    }
    connection.state = state
  }
}

/** `new` until the head of the first request is whole, `busy` while the server works on an answer. */
type State = 'new' | 'idle' | 'busy'

interface Connection {
  readonly socket: Socket
  readonly address: string
  readonly groups: readonly Group[]
  state: State
  /** Those under way: several when the client sends requests ahead. */
  readonly answers: ServerResponse[]
}

/** Each set is in the order in which connections came to it. */
interface Group extends Readonly<Record<State, Set<Connection>>> {
  /** Until then the busy ones are not searched again: many connections may be refused within that time. */
  nextSearchMs: number
}

function createGroup(): Group {
  return { new: new Set(), idle: new Set(), busy: new Set(), nextSearchMs: 0 }
}

function sizeOf(group: Group): number {
  return group.new.size + group.idle.size + group.busy.size
}

function findWaiting(group: Group): Connection | undefined {
  const [first] = group.new.size > 0 ? group.new : group.idle
  if (first || performance.now() < group.nextSearchMs) return first
  const found = group.busy.values().find(isWaitingForClient)
  if (!found) group.nextSearchMs = performance.now() + searchIntervalMs
  return found
}

const searchIntervalMs = 100

/** All is answered, and the client does not take it. */
function isWaitingForClient({ socket, answers }: Connection): boolean {
  return answers.length > 0 ? answers.every((answer) => answer.writableEnded) : socket.writableEnded
}

const body = JSON.stringify({
  code: 503,
  message: 'The server has too many open connections; try again in a moment',
})
const refusal = [
  'HTTP/1.1 503 Service Unavailable',
  'Content-Type: application/json; charset=utf-8',
  `Content-Length: ${Buffer.byteLength(body)}`,
  'Retry-After: 1',
  'Connection: close',
  '',
  body,
].join('\r\n')

function refuse(socket: Socket): void {
  socket.write(refusal)
  socket.destroySoon()
}
