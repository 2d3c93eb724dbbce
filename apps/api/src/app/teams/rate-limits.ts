import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import { freeShare } from '../../domain/teams/rate.ts'
import type { RateLimit, RateStore } from '../../domain/teams/rate.ts'
import { createRateBookings } from './rate-bookings.ts'
import { createRateWindows, pendingOf } from './rate-windows.ts'
import type { RateWindow } from './rate-windows.ts'

export interface RateState {
  readonly limit: number
  /** Negative when this request exceeds the limit. */
  readonly remaining: number
  /** Seconds until the window ends; at least 1. */
  readonly resetSeconds: number
}

/**
 * Counts requests per team and operation in fixed windows. A process that is alone on its store counts in memory. Several
 * add their counts to windows in the store, most of them after the requests were granted.
 */
export interface RateLimiter {
  /** Counts one request. Returns undefined when the operation has no limit. */
  take(teamId: string, operationId: string): Promise<RateState | undefined>
  /** Adds the counts of all windows to the store, for a process that has just joined. */
  share(): void
}

const anyOperation = '*'

export function createRateLimiter(
  limits: ReadonlyMap<string, RateLimit>,
  ports: {
    readonly store: RateStore
    /** Number of live processes on the store. */
    readonly countApis: () => number
    readonly clock: Clock
    readonly log: Logger
  },
): RateLimiter {
  const { clock, countApis } = ports
  const windows = createRateWindows(clock)
  const bookings = createRateBookings(ports)

  /** Counts a request without waiting if it is in the share of this process. */
  const takeFree = (window: RateWindow): boolean => {
    const apis = countApis()
    const left = window.limit.requests - window.booked
    const free = apis < 2 ? left : freeShare(left, apis)
    if (pendingOf(window) >= free) return false
    window.unbooked += 1
    if (apis > 1 && 2 * pendingOf(window) >= free) bookings.bookLater(window)
    return true
  }
  const takeBooked = async (window: RateWindow): Promise<boolean> => {
    if (countApis() < 2 || window.booked >= window.limit.requests) return false
    window.waiting += 1
    await bookings.book(window)
    if (window.granted === 0) return false
    window.granted -= 1
    return true
  }
  return {
    share() {
      if (countApis() < 2) return
      for (const window of windows.all()) if (window.unbooked > 0) bookings.bookLater(window)
    },
    async take(teamId, operationId) {
      const limit = limits.get(operationId) ?? limits.get(anyOperation)
      if (!limit) return undefined
      const window = windows.open(teamId, operationId, limit)
      const isGranted = takeFree(window) || (await takeBooked(window))
      const left = limit.requests - window.booked - pendingOf(window)
      return {
        limit: limit.requests,
        remaining: isGranted ? Math.max(left, 0) : -1,
        resetSeconds: Math.max(1, Math.ceil((window.endsAt - clock.now().getTime()) / 1000)),
      }
    },
  }
}
