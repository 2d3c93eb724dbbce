import { connect, Socket } from 'node:net'
import type { OnReadOpts } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A program that was just started may need a moment to listen. */
const retryDelaysMs = [100, 200, 300, 400]
/** A sandbox that is frozen for a snapshot drops SYN packets until it is thawed. */
const defaultLimitMs = 30_000

export interface DialOptions {
  readonly signal: AbortSignal
  /** Time limit for all attempts together. */
  readonly limitMs?: number
  /** Replaces the `data` events of the socket. */
  readonly onread?: ((socket: () => Socket) => OnReadOpts) | undefined
}

/** Returns undefined if nothing listens or answers within the limit, or if `signal` aborts. */
export async function dial(
  address: string,
  port: number,
  { signal: left, limitMs = defaultLimitMs, onread }: DialOptions,
): Promise<Socket | undefined> {
  if (port < 1 || port > 65_535) return undefined
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), limitMs)
  const signal = AbortSignal.any([left, limit.signal])
  try {
    for (const delayMs of [...retryDelaysMs, undefined]) {
      const result = await dialOnce(address, port, { signal, onread })
      if (result instanceof Socket) return result
      if (delayMs === undefined || !isRetryable(result) || signal.aborted) return undefined
      await sleep(delayMs, undefined, { signal }).catch(() => {}) // aborted: checked below
      if (signal.aborted) return undefined
    }
    return undefined
  } finally {
    clearTimeout(timer)
  }
}

/** EHOSTUNREACH: a frozen sandbox does not answer ARP requests either. */
function isRetryable(error: NodeJS.ErrnoException | undefined): boolean {
  return error?.code === 'ECONNREFUSED' || error?.code === 'EHOSTUNREACH'
}

/** Returns the error of a failed attempt, or undefined if `signal` aborted it. */
function dialOnce(
  address: string,
  port: number,
  { signal, onread }: Pick<DialOptions, 'signal' | 'onread'>,
): Promise<Socket | NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const socket: Socket = connect({
      host: address,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 20_000,
      // A tunnel forwards a half-close.
      allowHalfOpen: true,
      ...(onread && { onread: onread(() => socket) }),
    })
    const giveUp = () => {
      socket.destroy()
      settle(undefined)
    }
    const settle = (result: Socket | NodeJS.ErrnoException | undefined) => {
      signal.removeEventListener('abort', giveUp)
      resolve(result)
    }
    // Never removed: without a listener an error would become an uncaught exception.
    socket.on('error', settle)
    socket.once('connect', () => settle(socket))
    signal.addEventListener('abort', giveUp, { once: true })
  })
}
