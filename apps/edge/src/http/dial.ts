import { connect } from 'node:net'
import type { OnReadOpts, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A program that was just started may need a moment to listen. */
const waitsMs = [100, 200, 300, 400]
const dialTimeoutMs = 30_000

export interface DialOptions {
  readonly signal: AbortSignal
  /** To read the socket by other means than its events. */
  readonly onread?: ((socket: () => Socket) => OnReadOpts) | undefined
}

/** Undefined when nothing listens there, or when `signal` ended the attempt. */
export async function dial(
  address: string,
  port: number,
  options: DialOptions,
): Promise<Socket | undefined> {
  const { signal } = options
  if (port < 1 || port > 65_535) return undefined
  for (const waitMs of [...waitsMs, undefined]) {
    const socket = await dialOnce(address, port, options)
    if (socket || waitMs === undefined || signal.aborted) return socket
    await sleep(waitMs, undefined, { signal }).catch(() => {}) // given up: the next line of the loop sees it
    if (signal.aborted) return undefined
  }
  return undefined
}

function dialOnce(
  address: string,
  port: number,
  { signal, onread }: DialOptions,
): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket: Socket = connect({
      host: address,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 20_000,
      // A tunnel passes on that one side has finished while the other still speaks.
      allowHalfOpen: true,
      ...(onread && { onread: onread(() => socket) }),
    })
    const giveUp = () => {
      socket.destroy()
      settle(undefined)
    }
    const settle = (result: Socket | undefined) => {
      signal.removeEventListener('abort', giveUp)
      socket.setTimeout(0)
      socket.off('timeout', giveUp)
      resolve(result)
    }
    // Stays for good: between two owners of the socket an error must not become an uncaught exception.
    socket.on('error', () => settle(undefined))
    socket.once('connect', () => settle(socket))
    socket.setTimeout(dialTimeoutMs, giveUp)
    signal.addEventListener('abort', giveUp, { once: true })
  })
}
