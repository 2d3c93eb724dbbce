import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Sandbox } from '../app/sandboxes.ts'
import { readName } from '../domain/named-stream.ts'
import type { FirstBytes, Named } from '../domain/named-stream.ts'
import type { Target } from '../domain/way.ts'

/**
 * The name that a connection is for. Reads no byte where a name changes nothing. What was read is put back. Fails when
 * nothing was said in time by one that goes nowhere without a name.
 */
export async function nameOf(
  socket: Socket,
  sandbox: Sandbox,
  options: { readonly target: Target; readonly ended: AbortSignal },
): Promise<Named | undefined> {
  const { target, ended } = options
  const isNeeded = sandbox.needsName(target)
  if (!isNeeded && !sandbox.wantsName(target)) return undefined
  const patienceMs = isNeeded || webPorts.has(target.port) ? limitMs : shortLimitMs
  const patience = AbortSignal.timeout(patienceMs)
  try {
    return await readFirst(socket, AbortSignal.any([ended, patience]))
  } catch (error) {
    if (isNeeded || ended.aborted || !patience.aborted) throw error
    return undefined
  }
}

async function readFirst(socket: Socket, signal: AbortSignal): Promise<Named | undefined> {
  let bytes = Buffer.alloc(0)
  let first: FirstBytes = { kind: 'more' }
  try {
    for (let pieces = 0; pieces < mostPieces; pieces++) {
      await once(socket, 'readable', { signal })
      const piece: unknown = socket.read()
      if (!Buffer.isBuffer(piece)) break // that was its end
      bytes = Buffer.concat([bytes, piece])
      first = readName(bytes)
      if (first.kind !== 'more') break
    }
  } finally {
    if (!socket.readableEnded) socket.unshift(bytes)
  }
  return first.kind === 'name' ? { name: first.name, protocol: first.protocol } : undefined
}

/** Who waits to be spoken to gets no further: what it is for can only be told by what it says. */
const limitMs = 10_000
/** Where most is neither HTTP nor TLS: clients of SSH and of databases wait for the server, and must not wait for long. */
const shortLimitMs = 1000
const webPorts = new Set([80, 443])
/** All are read again with each: who sends single bytes must not keep everybody busy. */
const mostPieces = 64
