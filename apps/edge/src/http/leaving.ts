import type { Duplex } from 'node:stream'

export interface Leaving extends Disposable {
  readonly signal: AbortSignal
}

/**
 * Aborts when the client goes away, or when `closing` does. A socket that node:http reads tells so by itself; a `raw` one
 * only when somebody reads, so that is begun, with what comes kept for later.
 */
export function leavingOf(socket: Duplex, isRaw: boolean, closing: AbortSignal): Leaving {
  const gone = new AbortController()
  const leave = () => gone.abort()
  if (socket.destroyed || closing.aborted) leave()
  const events = isRaw ? ['close', 'end'] : ['close']
  socket.setMaxListeners(0) // a client may send requests ahead on one connection
  for (const event of events) socket.once(event, leave)
  closing.addEventListener('abort', leave)
  if (isRaw) socket.read(0)
  return {
    signal: gone.signal,
    [Symbol.dispose]() {
      for (const event of events) socket.off(event, leave)
      closing.removeEventListener('abort', leave)
    },
  }
}
