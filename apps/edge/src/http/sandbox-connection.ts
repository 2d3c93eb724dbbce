import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Refusal } from '../domain/refusal.ts'
import type { Target } from '../domain/route.ts'
import type { RunningSandbox } from '../domain/sandbox.ts'
import { dial } from './dial.ts'
import type { DialOptions } from './dial.ts'
import { dialTls } from './dial-tls.ts'

export interface ProxyContext {
  readonly target: Target
  readonly sandbox: RunningSandbox
  /** X-Forwarded-* headers, as a flat list of names and values. Undefined: the edge does not set them. */
  readonly origin?: string[] | undefined
  /** Called at most once, before any byte of a response is sent. */
  readonly refuse: (refusal: Refusal) => void
}

/** Closes with the client. When the sandbox ends, the client is reset. */
export interface SandboxConnection {
  readonly upstream: Socket
  /** Aborts when the connection is released. */
  readonly signal: AbortSignal
  readonly release: () => void
}

/** Returns undefined if the client disconnected or was refused. `onread` has no effect on TLS connections. */
export async function connectToSandbox(
  client: Duplex,
  context: ProxyContext,
  onread?: DialOptions['onread'],
): Promise<SandboxConnection | undefined> {
  const { sandbox } = context
  if (client.destroyed) return undefined
  const closed = new AbortController()
  let upstream: Socket | undefined
  let hasEnded = false
  const release = () => {
    detach()
    client.off('close', release)
    closed.abort()
    upstream?.destroy()
  }
  // Pipelined requests each add a listener.
  client.setMaxListeners(0)
  client.once('close', release)
  const detach = sandbox.attach((reason) => {
    // The client can still get a 'sandbox not found' response before the connect.
    if (reason !== 'closing' && !upstream) {
      hasEnded = true
      closed.abort()
    } else if (reason !== 'pausing') reset(client)
  })
  const socket = await open(context, { signal: closed.signal, onread })
  if (socket && !closed.signal.aborted) {
    upstream = socket
    return { upstream, signal: closed.signal, release }
  }
  socket?.destroy()
  release()
  if (hasEnded) context.refuse({ kind: 'sandbox_not_found', sandboxId: sandbox.id })
  else if (!client.destroyed) context.refuse(portClosed(context))
  return undefined
}

function open(
  { sandbox, target }: ProxyContext,
  options: DialOptions,
): Promise<Socket | undefined> {
  const { port, authority } = target
  const { signal } = options
  const dialPlain = async (given: DialOptions) =>
    sandbox.dial ? sandbox.dial(sandbox, port, given) : dial(sandbox.address, port, given)
  return target.usesTls
    ? dialTls(() => dialPlain({ signal }), { authority, signal })
    : dialPlain(options)
}

export function portClosed({ sandbox, target }: ProxyContext): Refusal {
  return { kind: 'port_closed', sandboxId: sandbox.id, port: target.port }
}

/** Resets the connection. After a clean close the client would take the stream for complete. */
export function reset(client: Duplex): void {
  if (client instanceof Socket) client.resetAndDestroy()
  else client.destroy()
}
