/**
 * Takes the connections that sandboxes begin, wherever they were meant to go, and passes on what may leave.
 *
 * Threats: all bytes are a sandbox's. No more is kept of them than its first few, until it is known where they go; after
 * that, no more than one side is ahead of the other.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { Sandbox, Sandboxes } from '../app/sandboxes.ts'
import { readName } from '../domain/named-stream.ts'
import type { FirstBytes } from '../domain/named-stream.ts'
import type { Dialer, Outside, Target } from '../domain/way.ts'
import { makeTransparent } from './transparent.ts'

/** Answers the port of the host that connections are to be led to. */
export async function openDoorway(
  sandboxes: Sandboxes,
  dialer: () => Dialer | undefined,
): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    void pass(socket, sandboxes, dialer()).catch(() => {})
  })
  server.maxConnections = mostConnections
  // Others must get in while one sandbox begins many and ends none.
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
  await once(server, 'listening')
  server.on('error', () => {}) // of one that could not be accepted
  makeTransparent(server)
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

async function pass(
  inside: Socket,
  sandboxes: Sandboxes,
  dialer: Dialer | undefined,
): Promise<void> {
  inside.on('error', () => {})
  const { remoteAddress = '', localAddress = '', localPort = 0 } = inside
  const sandbox = sandboxes.find(remoteAddress)
  const ended = new AbortController()
  let outside: Outside | undefined
  const connection = {
    end() {
      ended.abort()
      cut(inside)
      if (outside) cut(outside.socket)
    },
  }
  if (!sandbox || !dialer || !sandbox.admit(connection)) return connection.end()
  inside.once('close', () => ended.abort())
  try {
    const target = { address: localAddress, port: localPort }
    const name = await nameOf(inside, sandbox, target)
    const way = sandbox.lead(connection, target, name)
    if (way) {
      outside = await dialer.dial(way, target, ended.signal)
      await join(inside, outside)
    } else connection.end()
  } catch {
    connection.end() // nobody answered there
  } finally {
    sandbox.remove(connection)
  }
}

/** Reads no byte where a name changes nothing. What was read is put back. */
async function nameOf(
  socket: Socket,
  sandbox: Sandbox,
  target: Target,
): Promise<string | undefined> {
  if (!sandbox.needsName(target)) return undefined
  const signal = AbortSignal.timeout(firstBytesLimitMs)
  let bytes = Buffer.alloc(0)
  let first: FirstBytes = { kind: 'more' }
  for (let pieces = 0; pieces < mostPieces; pieces++) {
    await once(socket, 'readable', { signal })
    const piece: unknown = socket.read()
    if (!Buffer.isBuffer(piece)) break // that was its end
    bytes = Buffer.concat([bytes, piece])
    first = readName(bytes)
    if (first.kind !== 'more') break
  }
  if (!socket.readableEnded) socket.unshift(bytes)
  return first.kind === 'name' ? first.name : undefined
}

/** Resolves when both are closed. */
async function join(inside: Socket, { socket: outside, first }: Outside): Promise<void> {
  if (inside.destroyed) return void outside.destroy()
  if (first.length > 0) inside.write(first)
  const ways = [
    [inside, outside],
    [outside, inside],
  ] as const
  const closed = ways.map(
    ([from, to]) =>
      new Promise<void>((resolve) => {
        from.setKeepAlive(true, keepAliveMs)
        from.on('error', () => cut(to))
        from.once('close', () => {
          to.destroySoon()
          resolve()
        })
        from.pipe(to)
      }),
  )
  await Promise.all(closed)
}

/** At once, with a reset where Node.js can send one: while an end is on its way it cannot, and would lose the socket. */
function cut(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy()
  else socket.resetAndDestroy()
}

/** Who waits to be spoken to gets no further: what it is for can only be told by what it says. */
const firstBytesLimitMs = 10_000
/** All are read again with each: who sends single bytes must not keep everybody busy. */
const mostPieces = 64
const keepAliveMs = 60_000
/** Of all sandboxes together. */
const mostConnections = 8192
