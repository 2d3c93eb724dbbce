/** The life of one connection of a sandbox, from its first byte to its end. */
import type { Socket } from 'node:net'
import type { Sandboxes } from '../app/sandboxes.ts'
import type { Dialer, Outside, Way } from '../domain/way.ts'
import { cut } from './cut.ts'
import { nameOf } from './first-bytes.ts'
import { join } from './join.ts'
import type { Terminator } from './terminator.ts'

export interface PassageParts {
  readonly sandboxes: Sandboxes
  readonly terminator: Terminator
  /** Undefined until the agent has said where sandboxes may go. */
  dialer(): Dialer | undefined
}

export async function pass(inside: Socket, parts: PassageParts): Promise<void> {
  inside.on('error', () => {})
  const { remoteAddress = '', localAddress = '', localPort = 0 } = inside
  const sandbox = parts.sandboxes.find(remoteAddress)
  const dialer = parts.dialer()
  const ended = new AbortController()
  const open = new Set([inside])
  const connection = {
    end() {
      ended.abort()
      open.forEach(cut)
    },
  }
  if (!sandbox || !dialer || !sandbox.admit(connection)) return connection.end()
  inside.once('close', () => ended.abort())
  const target = { address: localAddress, port: localPort }
  const dial = async (way: Way): Promise<Outside> => {
    const outside = await dialer.dial(way, target, ended.signal)
    if (ended.signal.aborted) outside.socket.destroy()
    open.add(outside.socket)
    outside.socket.once('close', () => open.delete(outside.socket))
    return outside
  }
  try {
    const named = await nameOf(inside, sandbox, { target, ended: ended.signal })
    const way = sandbox.lead(connection, target, named)
    if (!way || (way.transform && !sandbox.admitTermination())) connection.end()
    else if (way.transform) {
      const { transform } = way
      await parts.terminator.terminate(inside, {
        transform,
        dial: () => dial(way),
        ended: ended.signal,
      })
    } else await join(inside, await dial(way))
  } catch {
    connection.end() // nobody answered there
  } finally {
    sandbox.remove(connection)
  }
}
