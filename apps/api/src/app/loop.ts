import type { Logger } from '@atoll/kit/log'

/** Runs a pass at once, then after a delay or a nudge. Passes never overlap. */
export interface Loop {
  /** Starts the next pass at once, or right after the one in progress. */
  nudge(): void
  /** Resolves after the first pass, even if it failed. */
  readonly first: Promise<void>
  close(): Promise<void>
}

const retryMs = 1_000

/** Starts a loop. `pass` returns the milliseconds until the next pass; a failed pass is retried after a second. */
export function startLoop(
  name: string,
  pass: (signal: AbortSignal) => Promise<number>,
  log: Logger,
): Loop {
  const closing = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let underway: Promise<void> | undefined
  let again = false

  const onePass = async (): Promise<void> => {
    const delayMs = await pass(closing.signal).catch((error: unknown) => {
      if (!closing.signal.aborted)
        log.warn({ err: error }, `${name}: a pass failed; the next one tries again`)
      return retryMs
    })
    underway = undefined
    if (!closing.signal.aborted) timer = setTimeout(run, again ? 0 : delayMs)
  }
  const run = (): Promise<void> => {
    clearTimeout(timer)
    again = false
    underway = onePass()
    return underway
  }

  return {
    nudge() {
      if (closing.signal.aborted) return
      if (underway) again = true
      else void run()
    },
    first: run(),
    async close() {
      closing.abort()
      clearTimeout(timer)
      await underway
    },
  }
}
