import type { Clock } from '@atoll/kit/clock'

/** How many requests a team may make of one operation in so many seconds. */
export interface RateLimit {
  readonly requests: number
  readonly seconds: number
}

export interface RateState {
  readonly limit: number
  /** Below zero: this request is one too many. */
  readonly remaining: number
  /** Until the count begins anew; at least 1. */
  readonly resetSeconds: number
}

/** Counts the requests of each team and operation in windows of fixed length, in the memory of this process. */
export interface RateLimiter {
  /** Undefined when there is no limit. */
  take(teamId: string, operationId: string): RateState | undefined
}

const anyOperation = '*'

const sweepSize = 1_000

export function createRateLimiter(
  limits: ReadonlyMap<string, RateLimit>,
  clock: Clock,
): RateLimiter {
  const windows = new Map<string, { readonly endsAt: number; used: number }>()

  const windowOf = (key: string, now: number, seconds: number) => {
    const current = windows.get(key)
    // A clock that was set back must not lock anybody out for long.
    if (current && now < current.endsAt && current.endsAt - now <= seconds * 1000) return current
    if (windows.size >= sweepSize) sweep(now)
    const opened = { endsAt: now + seconds * 1000, used: 0 }
    windows.set(key, opened)
    return opened
  }
  const sweep = (now: number) => {
    for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key)
  }

  return {
    take(teamId, operationId) {
      const limit = limits.get(operationId) ?? limits.get(anyOperation)
      if (!limit) return undefined
      const now = clock.now().getTime()
      const window = windowOf(`${teamId} ${operationId}`, now, limit.seconds)
      window.used += 1
      return {
        limit: limit.requests,
        remaining: limit.requests - window.used,
        resetSeconds: Math.max(1, Math.ceil((window.endsAt - now) / 1000)),
      }
    },
  }
}
