/**
 * Reads and writes of a file one after the other, done at once for as long as the system is quick about them. Node.js does
 * them in threads of their own, and to hand one over costs as much as 256 KiB to read or write, under gVisor more. But what
 * is slow would keep everything else of the daemon waiting, and what hangs would do so for ever: so the first call goes to
 * a thread, and so do those that follow a slow one.
 */
export interface QuickCalls {
  <Result>(atOnce: () => Result, inThread: () => Promise<Result>): Promise<Result>
}

export function createQuickCalls(now: () => number = () => performance.now()): QuickCalls {
  let toThread = 1
  return async (atOnce, inThread) => {
    if (toThread > 0) {
      toThread -= 1
      return inThread()
    }
    const began = now()
    const result = atOnce()
    if (now() - began > slowMs) toThread = afterSlow
    return result
  }
}

const slowMs = 10
const afterSlow = 32
