/**
 * Accepts all redirected TCP connections of sandboxes, whatever their destination, and forwards the allowed
 * ones.
 *
 * Threats: all bytes come from a sandbox. Only the first few are buffered until the connection is routed; after that,
 * backpressure limits how far one side can get ahead of the other.
 */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { handleConnection } from './connection.ts'
import type { ConnectionParts } from './connection.ts'
import { makeTransparent } from './transparent.ts'

/** Returns the host port that connections must be redirected to. */
export async function startTcpListener(parts: ConnectionParts): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    void handleConnection(socket, parts).catch(() => {})
  })
  server.maxConnections = maxConnections
  // Large enough that one sandbox with many half-open connections does not block the others.
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
  await once(server, 'listening')
  server.on('error', () => {}) // a connection that could not be accepted
  makeTransparent(server)
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

/** Limit for all sandboxes together. */
const maxConnections = 8192
