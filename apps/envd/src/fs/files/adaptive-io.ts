/**
 * Runs sequential reads or writes of a file synchronously as long as they are fast. Handing a call to the thread
 * pool of Node.js costs as much as reading or writing 256 KiB, more under gVisor. But a slow call would block the
 * event loop, and a hung one forever: so the first call uses a thread, and so do the calls after a slow one.
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
