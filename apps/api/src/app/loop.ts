import { captureContext } from '@atoll/kit/async-context'
import type { Logger } from '@atoll/kit/log'

/** Calls a function at once, then again after each delay or nudge. Calls (passes) never overlap. */
export interface Loop {
  /** Starts the next pass at once, or right after the one in progress. */
  nudge(): void
  /** Resolves after the first pass, even if it failed. */
  readonly first: Promise<void>
  close(): Promise<void>
}

export const retryMs = 1_000

/**
 * Starts a loop. `pass` returns the milliseconds until the next pass; a failed pass is retried after a second, or after the
 * time that `retryAfterMs` returns.
 */
export function startLoop(
  name: string,
  pass: (signal: AbortSignal) => Promise<number>,
  log: Logger,
  retryAfterMs: () => number = () => retryMs,
): Loop {
  const closing = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let currentPass: Promise<void> | undefined
  let isNudged = false
  // A nudge comes from a request, and a pass must not count as part of that request in traces.
  const outsideRequests = captureContext()

  const runPass = async (): Promise<void> => {
    const delayMs = await pass(closing.signal).catch((error: unknown) => {
      const waitMs = Math.round(retryAfterMs())
      if (!closing.signal.aborted)
        log.warn({ err: error }, `${name}: the pass failed; it is retried in ${waitMs} ms`)
      return waitMs
    })
    currentPass = undefined
    if (!closing.signal.aborted) timer = setTimeout(run, isNudged ? 0 : delayMs)
  }
  const run = (): Promise<void> => {
    clearTimeout(timer)
    isNudged = false
    currentPass = runPass()
    return currentPass
  }

  return {
    nudge() {
      if (closing.signal.aborted) return
      if (currentPass) isNudged = true
      else void outsideRequests(run)
    },
    first: run(),
    async close() {
      closing.abort()
      clearTimeout(timer)
      await currentPass
    },
  }
}
