import type { Logger } from '@atoll/kit/log'

/** A reconciler at work: a pass now, then by timer or nudge, never two at once. */
export interface Loop {
  /** Something may have changed: the next pass begins at once, or right after the one under way. */
  nudge(): void
  /** Settles with the first pass, whether it went well or not. */
  readonly first: Promise<void>
  close(): Promise<void>
}

const retryMs = 1_000

/** `pass` returns how many milliseconds may go by until the next one; one that fails is tried again soon. */
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
      if (!closing.signal.aborted) log.warn({ err: error }, `${name}: pass failed`)
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
