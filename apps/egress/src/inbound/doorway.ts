/**
 * Takes the connections that sandboxes begin, wherever they were meant to go, and passes on what may leave.
 *
 * Threats: all bytes are a sandbox's. No more is kept of them than its first few, until it is known where they go; after
 * that, no more than one side is ahead of the other.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { pass } from './passage.ts'
import type { PassageParts } from './passage.ts'
import { makeTransparent } from './transparent.ts'

/** Answers the port of the host that connections are to be led to. */
export async function openDoorway(parts: PassageParts): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    void pass(socket, parts).catch(() => {})
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

/** Of all sandboxes together. */
const mostConnections = 8192
