import type { Duplex } from 'node:stream'

export interface ClientAbort extends Disposable {
  readonly signal: AbortSignal
}

/**
 * Aborts when the client disconnects or `closing` aborts. A raw socket reports a disconnect only while it is read, so
 * reading starts here, and the input stays buffered.
 */
export function watchClientAbort(
  socket: Duplex,
  isRaw: boolean,
  closing: AbortSignal,
): ClientAbort {
  const aborted = new AbortController()
  const abort = () => aborted.abort()
  if (socket.destroyed || closing.aborted) abort()
  const events = isRaw ? ['close', 'end'] : ['close']
  socket.setMaxListeners(0) // pipelined requests each add listeners
  for (const event of events) socket.once(event, abort)
  closing.addEventListener('abort', abort)
  if (isRaw) socket.read(0)
  return {
    signal: aborted.signal,
    [Symbol.dispose]() {
      for (const event of events) socket.off(event, abort)
      closing.removeEventListener('abort', abort)
    },
  }
}
