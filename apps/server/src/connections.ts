/**
 * Limits client connections, in total and per client.
 *
 * Threats: a client without credentials opens connections until no file descriptor is left for the store, the log or
 * other clients. A full server therefore closes another connection for each new one, one on which it waits for the
 * client. The client with the most waiting connections loses one, so a flood from a few addresses only replaces its own
 * connections. A connection is refused only while the server works on requests of all others; those are never closed.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { clientOf, isLoopback } from './client-address.ts'
import { createRanking } from './ranking.ts'

export interface ConnectionLimits {
  readonly maxConnections: number
  /** Not applied to loopback: a reverse proxy there carries many clients. */
  readonly maxPerClient: number
}

export interface Connections {
  /**
   * Counts a new connection. Above a limit, closes another connection or refuses this one: with a response, or with a
   * reset if a TLS handshake would have to come first.
   */
  add(socket: Socket, isTls?: boolean): void
  /** Continues with the TLS socket in place of the TCP socket below it, once the handshake is complete. */
  secure(tcp: Socket, secured: Socket): void
  /** Marks the connection busy until the response is sent. Call it when the headers of a request have arrived. */
  begin(socket: Socket, answer: ServerResponse): void
  /** Marks a connection that no longer speaks HTTP; it stays busy until it ends. */
  upgrade(socket: Socket): void
  destroyAll(): void
}

export interface ConnectionOptions {
  /** True if the limit per client does not apply. `client` may be a network, `address` is never. */
  readonly isExempt?: (client: string, address: string) => boolean
  /** Time within which request headers usually follow a new connection. */
  readonly firstHeadMs?: number
}

export function createConnections(
  limits: ConnectionLimits,
  { isExempt = isLoopback, firstHeadMs = 1_000 }: ConnectionOptions = {},
): Connections {
  const connections = new Map<Socket, Connection>()
  const clients = new Map<string, Client>()
  const byWaiting = createRanking<Client>()
  let nextSearchMs = 0

  return {
    add(socket, isTls = false) {
      const { remoteAddress = '' } = socket
      const address = clientOf(remoteAddress)
      const client = clients.get(address) ?? createClient(address)
      const hasShare = isExempt(address, remoteAddress) || sizeOf(client) < limits.maxPerClient
      if (!hasShare || connections.size >= limits.maxConnections) {
        const victim = hasShare ? findVictim() : (findWaiting(client) ?? findStalled(client.busy))
        if (!victim) return isTls ? void socket.resetAndDestroy() : refuse(socket)
        remove(victim)
        // A reset frees the descriptor and the kernel's buffers immediately.
        victim.socket.resetAndDestroy()
      }
      clients.set(address, client)
      const sinceMs = performance.now()
      const connection: Connection = { socket, client, sinceMs, state: 'new', answers: [] }
      connections.set(socket, connection)
      client.new.add(connection)
      byWaiting.set(client, waitingOf(client))
      socket.once('close', () => remove(connection))
    },

    secure(tcp, secured) {
      const connection = connections.get(tcp)
      if (!connection) return
      connections.delete(tcp)
      connections.set(secured, connection)
      connection.socket = secured
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
    const { socket, client, state } = connection
    if (!connections.delete(socket)) return
    client[state].delete(connection)
    byWaiting.set(client, waitingOf(client))
    if (sizeOf(client) === 0) clients.delete(client.address)
  }

  function move(connection: Connection, state: State): void {
    const { socket, client } = connection
    if (!connections.has(socket)) return
    client[connection.state].delete(connection)
    client[state].add(connection)
    connection.state = state
    byWaiting.set(client, waitingOf(client))
  }

  /** Finds the oldest connection without a request; prefers an idle one while the oldest is still fresh. */
  function findWaiting(client: Client): Connection | undefined {
    const [oldest] = client.new
    const [idle] = client.idle
    const isLate = oldest !== undefined && performance.now() - oldest.sinceMs > firstHeadMs
    return isLate ? oldest : (idle ?? oldest)
  }

  function findVictim(): Connection | undefined {
    const greediest = byWaiting.top()
    if (greediest) return findWaiting(greediest)
    // Limit the search rate: each search scans all busy connections, and a flood may cause many.
    if (performance.now() < nextSearchMs) return undefined
    const stalled = findStalled(connections.values())
    if (!stalled) nextSearchMs = performance.now() + searchIntervalMs
    return stalled
  }
}

const searchIntervalMs = 100

/** `new`: no complete request headers yet. `busy`: the server works on a response. */
type State = 'new' | 'idle' | 'busy'

interface Connection {
  /** The TLS socket, if there is one and its handshake is complete. */
  socket: Socket
  readonly client: Client
  readonly sinceMs: number
  state: State
  /** Responses in progress; several when the client pipelines requests. */
  readonly answers: ServerResponse[]
}

/** Each set is in insertion order, oldest first. */
interface Client extends Readonly<Record<State, Set<Connection>>> {
  readonly address: string
}

function createClient(address: string): Client {
  return { address, new: new Set(), idle: new Set(), busy: new Set() }
}

function sizeOf(client: Client): number {
  return waitingOf(client) + client.busy.size
}

/** Counts the connections on which the server waits for this client. */
function waitingOf(client: Client): number {
  return client.new.size + client.idle.size
}

/** Finds a connection with all responses written whose client does not read them or does not close it. */
function findStalled(connections: Iterable<Connection>): Connection | undefined {
  return Iterator.from(connections).find(({ socket, answers }) =>
    answers.length > 0 ? answers.every((answer) => answer.writableEnded) : socket.writableEnded,
  )
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
