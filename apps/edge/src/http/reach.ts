import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../domain/refusal.ts'
import type { Target } from '../domain/route.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import { dial } from './dial.ts'
import type { DialOptions } from './dial.ts'
import { dialSecure } from './dial-secure.ts'

/** One client's way to one sandbox. */
export interface Pass {
  readonly target: Target
  readonly sandbox: RunningSandbox
  /** Called at most once, and only while nothing of an answer was sent. */
  readonly refuse: (refusal: Refusal) => void
}

/** An open way. It ends with the client, and the client is reset when the sandbox ends. */
export interface Reached {
  readonly upstream: Socket
  /** Aborted when the way is closed, for whatever reason. */
  readonly signal: AbortSignal
  readonly release: () => void
}

/** Connects to the port. Undefined when the client has left or was refused. `onread` is not for secure connections. */
export async function reach(
  client: Duplex,
  pass: Pass,
  onread?: DialOptions['onread'],
): Promise<Reached | undefined> {
  const { sandbox } = pass
  if (client.destroyed) return undefined
  const over = new AbortController()
  let upstream: Socket | undefined
  let hasEnded = false
  const release = () => {
    detach()
    client.off('close', release)
    over.abort()
    upstream?.destroy()
  }
  // A client may send requests ahead on one connection; each of them listens here.
  client.setMaxListeners(0)
  client.once('close', release)
  const detach = sandbox.attach((reason) => {
    // As long as nothing was sent, the answer can still be that there is no such sandbox.
    if (reason !== 'closing' && !upstream) {
      hasEnded = true
      over.abort()
    } else if (reason !== 'pausing') reset(client)
  })
  const socket = await open(pass, { signal: over.signal, onread })
  if (socket && !over.signal.aborted) {
    upstream = socket
    return { upstream, signal: over.signal, release }
  }
  socket?.destroy()
  release()
  if (hasEnded) pass.refuse({ kind: 'sandbox_not_found', sandboxId: sandbox.id })
  else if (!client.destroyed) pass.refuse(portClosed(pass))
  return undefined
}

function open({ sandbox, target }: Pass, options: DialOptions): Promise<Socket | undefined> {
  const { port, authority } = target
  return target.isSecure
    ? dialSecure(sandbox.address, port, { authority, signal: options.signal })
    : dial(sandbox.address, port, options)
}

export function portClosed({ sandbox, target }: Pass): Refusal {
  return { kind: 'port_closed', sandboxId: sandbox.id, port: target.port }
}

/** An abrupt end: a clean one would look to the client like a stream that is complete. */
export function reset(client: Duplex): void {
  if (client instanceof Socket) client.resetAndDestroy()
  else client.destroy()
}
