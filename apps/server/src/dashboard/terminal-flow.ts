/**
 * Flow control of a terminal. Browsers read a WebSocket as fast as they can and keep what the page has not drawn yet, so
 * the page reports what it has drawn, and output beyond a window waits in the sandbox.
 */
export interface Flow {
  /** Resolves when more may be sent. Rejects when the connection closes. */
  sent(bytes: number): Promise<void>
  acknowledged(bytes: number): void
}

const windowBytes = 1024 * 1024

export function createFlow(signal: AbortSignal, window = windowBytes): Flow {
  let outstanding = 0
  let room = Promise.withResolvers<void>()
  room.promise.catch(() => {})
  signal.addEventListener('abort', () => room.reject(signal.reason), { once: true })
  return {
    async sent(bytes) {
      outstanding += bytes
      while (outstanding > window) {
        signal.throwIfAborted()
        await room.promise
      }
    },
    acknowledged(bytes) {
      outstanding = Math.max(0, outstanding - bytes)
      room.resolve()
      room = Promise.withResolvers<void>()
      room.promise.catch(() => {})
    },
  }
}
