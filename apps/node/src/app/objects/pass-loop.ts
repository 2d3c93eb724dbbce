import type { UploadPasses } from './upload-passes.ts'

export interface PassLoop {
  /** There may be something new to do. */
  nudge(): void
  close(): Promise<void>
}

const intervalMs = { usual: 30_000, afterFailure: 10_000 }

/**
 * Runs passes until it is closed, never two at once. The first one begins now. `waitsOut`: after a failure, the next pass
 * comes when it is due, also when there is something new.
 */
export function startPassLoop(
  passes: UploadPasses,
  { waitsOut = false }: { readonly waitsOut?: boolean } = {},
): PassLoop {
  const closing = new AbortController()
  let hasFailed = false
  let timer: NodeJS.Timeout | undefined
  let underway: Promise<void> | undefined
  let isNudged = false

  async function work(): Promise<void> {
    let waitMs = intervalMs.usual
    do {
      isNudged = false
      hasFailed = !(await passes.run(closing.signal))
      waitMs = hasFailed ? intervalMs.afterFailure : intervalMs.usual
    } while (isNudged && !(hasFailed && waitsOut) && !closing.signal.aborted)
    underway = undefined
    if (!closing.signal.aborted) timer = setTimeout(begin, waitMs)
  }
  function begin(): void {
    clearTimeout(timer)
    underway = work()
  }
  const nudge = () => {
    if (closing.signal.aborted) return
    isNudged = true
    if (!underway && !(hasFailed && waitsOut)) begin()
  }
  nudge()
  return {
    nudge,
    async close() {
      clearTimeout(timer)
      closing.abort()
      await underway
    },
  }
}
