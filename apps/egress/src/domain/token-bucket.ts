/**
 * A rate with a burst.
 *
 * Threats: all sandboxes share one thread, and a connection that is looked into costs it some milliseconds where one that
 * passes costs next to nothing. Who may begin them without limit keeps everybody else waiting.
 */
export interface TokenBucket {
  /** False when there is none left. */
  take(): boolean
}

/** `now` in milliseconds, and never back. */
export function createTokenBucket(
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number },
  now: () => number,
): TokenBucket {
  let tokens = burst
  let countedAt = now()
  return {
    take() {
      const at = now()
      tokens = Math.min(burst, tokens + ((at - countedAt) * perSecond) / 1000)
      countedAt = at
      if (tokens < 1) return false
      tokens -= 1
      return true
    },
  }
}
