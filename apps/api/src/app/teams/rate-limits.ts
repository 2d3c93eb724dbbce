import type { Clock } from '@atoll/kit/clock'

/** Maximum number of requests per team and operation in a time window. */
export interface RateLimit {
  readonly requests: number
  readonly seconds: number
}

export interface RateState {
  readonly limit: number
  /** Negative when this request exceeds the limit. */
  readonly remaining: number
  /** Seconds until the window ends; at least 1. */
  readonly resetSeconds: number
}

/** Counts requests per team and operation in fixed windows, in the memory of this process. */
export interface RateLimiter {
  /** Counts one request. Returns undefined when the operation has no limit. */
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
    // If the clock was set back, start a new window instead of locking the team out.
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
