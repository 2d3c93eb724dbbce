import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Sandbox } from '../app/sandboxes.ts'
import { sniffServerName } from '../domain/sniffing/sniff.ts'
import type { SniffResult, ServerName } from '../domain/sniffing/sniff.ts'
import type { Destination } from '../domain/route.ts'

/**
 * Reads the server name of a connection. Reads nothing if a name makes no difference; unshifts what it read. Rejects on
 * timeout if the connection is refused without a name.
 */
export async function readServerName(
  socket: Socket,
  sandbox: Sandbox,
  options: { readonly destination: Destination; readonly ended: AbortSignal },
): Promise<ServerName | undefined> {
  const { destination, ended } = options
  const isNeeded = sandbox.needsName(destination)
  if (!isNeeded && !sandbox.canUseName(destination)) return undefined
  const durationMs = isNeeded || webPorts.has(destination.port) ? timeoutMs : shortTimeoutMs
  const timeout = AbortSignal.timeout(durationMs)
  try {
    return await readFirstBytes(socket, AbortSignal.any([ended, timeout]))
  } catch (error) {
    if (isNeeded || ended.aborted || !timeout.aborted) throw error
    return undefined
  }
}

async function readFirstBytes(
  socket: Socket,
  signal: AbortSignal,
): Promise<ServerName | undefined> {
  let bytes = Buffer.alloc(0)
  let result: SniffResult = { kind: 'more' }
  try {
    for (let reads = 0; reads < maxReads; reads++) {
      await once(socket, 'readable', { signal })
      const piece: unknown = socket.read()
      if (!Buffer.isBuffer(piece)) break // end of stream
      bytes = Buffer.concat([bytes, piece])
      result = sniffServerName(bytes)
      if (result.kind !== 'more') break
    }
  } finally {
    if (!socket.readableEnded) socket.unshift(bytes)
  }
  return result.kind === 'name' ? { name: result.name, protocol: result.protocol } : undefined
}

/** A client that waits for the server to speak first gets no further, since only its own bytes can name the server. */
const timeoutMs = 10_000
/**
 * Other ports carry mostly protocols such as SSH and databases, where the server speaks first. Clients must not wait
 * long.
 */
const shortTimeoutMs = 1000
const webPorts = new Set([80, 443])
/** Each read parses all bytes again, so a client that sends single bytes must not keep the process busy. */
const maxReads = 64
