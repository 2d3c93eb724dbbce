/**
 * Decides when envd compacts its memory: at the end of the first warm-up, and whenever it is idle after its memory
 * grew. V8 keeps the space of its garbage, so after a burst of requests envd would stay several times as large as it
 * needs to be. A compaction blocks envd for 50 ms or more. So it waits for a period without a request in which envd did
 * next to nothing: output of processes and forwarded ports make it busy too.
 */

export interface MemoryCompaction {
  /** Compacts now, unless that happened before: copies of a sandbox continue from compacted memory. */
  compactOnce(): void
  /** Reports a request. The caller calls the result when it has ended. */
  requestStarted(): () => void
  close(): void
}

export interface MemoryCompactionDeps {
  readonly compact: () => void
  /** Current size of the memory that a compaction can shrink. */
  readonly memoryBytes: () => number
  /** Processor time that envd used since its start. */
  readonly processorMs: () => number
  /** Monotonic clock. */
  readonly nowMs: () => number
  /** Receives failures, after which the sandbox only takes more memory. */
  readonly report: (cause: unknown) => void
}

export function createMemoryCompaction(deps: MemoryCompactionDeps): MemoryCompaction {
  let requests = 0
  let wasUsed = false
  let closed = false
  let timer: NodeJS.Timeout | undefined
  /** Undefined until the first compaction. */
  let compactBytes: number | undefined

  return {
    compactOnce() {
      if (compactBytes === undefined) compact()
    },
    requestStarted() {
      requests += 1
      wasUsed = true
      return () => {
        requests -= 1
        if (requests === 0) startTimer()
      }
    },
    close() {
      closed = true
      clearTimeout(timer)
    },
  }

  /** A timer that already runs is kept: a request costs no new one. */
  function startTimer(): void {
    if (closed || timer) return
    wasUsed = false
    const [sinceMs, processorMs] = [deps.nowMs(), deps.processorMs()]
    const check = () => {
      timer = undefined
      // The end of the last request starts the timer again.
      if (requests > 0) return
      const isIdle = !wasUsed && deps.processorMs() - processorMs <= idleProcessorMs
      // A late timer means that the sandbox was frozen: the client that resumed it is about to send a request.
      const isLate = deps.nowMs() - sinceMs > quietPeriodMs + lateMs
      if (!isIdle || isLate) startTimer()
      else if (deps.memoryBytes() - (compactBytes ?? 0) >= growthBytes) compact()
    }
    timer = setTimeout(check, quietPeriodMs).unref()
  }

  function compact(): void {
    try {
      deps.compact()
    } catch (error) {
      deps.report(error)
    }
    compactBytes = deps.memoryBytes()
  }
}

const quietPeriodMs = 5000
const lateMs = 1000
/** Processor time in this period up to which envd counts as idle. The node fetches logs all the time. */
const idleProcessorMs = 100
/** Growth that is worth a compaction. A single command takes a tenth of this. */
const growthBytes = 4 * 1024 * 1024
