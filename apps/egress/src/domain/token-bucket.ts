/**
 * Rate limit with a burst.
 *
 * Threats: all sandboxes share one thread. Terminating a connection takes it some milliseconds; piping one takes next
 * to nothing. Without a limit, one sandbox could stall all others.
 */
export interface TokenBucket {
  /** Returns false if the limit is reached. */
  take(): boolean
}

/** `now` is a monotonic clock in milliseconds. */
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
