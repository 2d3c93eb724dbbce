import type { Clock } from '@atoll/kit/clock'
import type { RateLimit } from '../../domain/teams/rate.ts'

/** Current window of a team and an operation, as one process knows it. */
export interface RateWindow {
  readonly teamId: string
  readonly operationId: string
  readonly limit: RateLimit
  /** Unix milliseconds. */
  endsAt: number
  /** Requests of all processes in the window, by the last answer of the store. */
  booked: number
  /** Granted requests that the store does not count yet. */
  unbooked: number
  /** Granted requests that a statement in progress adds to the store. */
  beingBooked: number
  /** Requests that wait until the store has counted them. */
  waiting: number
  /** Requests that have waited, that the limit permits, and that will notice in a moment. */
  granted: number
}

/** Windows of one process. */
export interface RateWindows {
  /** Returns the window of this moment. */
  open(teamId: string, operationId: string, limit: RateLimit): RateWindow
  all(): Iterable<RateWindow>
}

const sweepSize = 1_000

export function createRateWindows(clock: Clock): RateWindows {
  const windows = new Map<string, RateWindow>()

  const sweep = (now: number) => {
    for (const [key, { endsAt, waiting, beingBooked }] of windows) {
      if (endsAt <= now && waiting + beingBooked === 0) windows.delete(key)
    }
  }
  return {
    open(teamId, operationId, limit) {
      const key = `${teamId} ${operationId}`
      const now = clock.now().getTime()
      const current = windows.get(key)
      if (current) {
        renew(current, now)
        return current
      }
      if (windows.size >= sweepSize) sweep(now)
      const counts = { booked: 0, unbooked: 0, beingBooked: 0, waiting: 0, granted: 0 }
      const opened = { teamId, operationId, limit, endsAt: now + limit.seconds * 1000, ...counts }
      windows.set(key, opened)
      return opened
    },
    all: () => windows.values(),
  }
}

/** Returns the number of granted requests that the store may not count yet. */
export function pendingOf({ unbooked, beingBooked }: RateWindow): number {
  return unbooked + beingBooked
}

/** Begins a new window if the current one has ended. If the clock was set back, too, instead of locking the team out. */
export function renew(window: RateWindow, now: number): void {
  const lengthMs = window.limit.seconds * 1000
  if (now < window.endsAt && window.endsAt - now <= lengthMs) return
  window.endsAt = now + lengthMs
  window.booked = 0
  window.unbooked = 0
}
