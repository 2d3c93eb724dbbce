/**
 * Reads and writes of a file one after the other, done at once for as long as the system is quick about them. Node.js does
 * them in threads of their own, and to hand one over costs as much as 256 KiB to read or write, under gVisor more. But what
 * is slow would keep everything else of the daemon waiting, and what hangs would do so for ever: so the first call goes to
 * a thread, and so do those that follow a slow one.
 */
export interface AdaptiveIo {
  <Result>(callSync: () => Result, callAsync: () => Promise<Result>): Promise<Result>
}

export function createAdaptiveIo(now: () => number = () => performance.now()): AdaptiveIo {
  let asyncCallsLeft = 1
  return async (callSync, callAsync) => {
    if (asyncCallsLeft > 0) {
      asyncCallsLeft -= 1
      return callAsync()
    }
    const startedMs = now()
    const result = callSync()
    if (now() - startedMs > slowMs) asyncCallsLeft = asyncCallsAfterSlow
    return result
  }
}

const slowMs = 10
const asyncCallsAfterSlow = 32
