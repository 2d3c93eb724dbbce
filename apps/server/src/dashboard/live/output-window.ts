/**
 * Flow control of a terminal. Browsers read a WebSocket as fast as they can and keep what the page has not drawn yet, so
 * the page reports what it has drawn, and output beyond a window waits in the sandbox.
 */
export interface OutputWindow {
  /** Resolves when more may be sent. Rejects when the channel closes. */
  sent(bytes: number): Promise<void>
  acknowledged(bytes: number): void
  /** True while `sent` waits for the page. */
  isFull(): boolean
  /** Lets a waiting `sent` resolve although the page has not drawn enough. */
  release(): void
}

const windowBytes = 256 * 1024

export function createOutputWindow(signal: AbortSignal, size = windowBytes): OutputWindow {
  let outstanding = 0
  let waiting: PromiseWithResolvers<void> | undefined
  const release = () => {
    waiting?.resolve()
    waiting = undefined
  }
  signal.addEventListener('abort', () => waiting?.reject(signal.reason), { once: true })
  return {
    async sent(bytes) {
      outstanding += bytes
      if (outstanding <= size) return
      signal.throwIfAborted()
      waiting = Promise.withResolvers<void>()
      await waiting.promise
    },
    acknowledged(bytes) {
      outstanding = Math.max(0, outstanding - bytes)
      if (outstanding <= size) release()
    },
    isFull: () => waiting !== undefined,
    release,
  }
}
