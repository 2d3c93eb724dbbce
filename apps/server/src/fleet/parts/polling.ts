import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '@atoll/kit/log'

export interface Polling {
  /** Resolves after the first attempt, even if it failed. */
  readonly first: Promise<void>
  close(): Promise<void>
}

/** Repeats `work` until `close`. Reports the first failure of a series only: an outage would fill the log. */
export function startPolling(
  name: string,
  intervalMs: number,
  log: Logger,
  work: () => Promise<void>,
): Polling {
  const closing = new AbortController()
  let isFailing = false
  const attempt = async (): Promise<void> => {
    try {
      await work()
      isFailing = false
    } catch (error) {
      if (!isFailing && !closing.signal.aborted)
        log.warn({ err: error, event: 'fleet.poll' }, `${name}: failed, and is repeated`)
      isFailing = true
    }
  }
  const first = attempt()
  const run = async (): Promise<void> => {
    await first
    while (!closing.signal.aborted) {
      const delayMs = intervalMs * (0.8 + Math.random() * 0.4)
      await sleep(delayMs, undefined, { signal: closing.signal, ref: false }).catch(() => {}) // closing
      if (!closing.signal.aborted) await attempt()
    }
  }
  const done = run()
  return {
    first,
    async close() {
      closing.abort()
      await done
    },
  }
}
