import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { RateStore, SharedWindow } from '../../domain/teams/rate.ts'
import { renew } from './rate-windows.ts'
import type { RateWindow } from './rate-windows.ts'

/** Adds what this process has granted to the windows that all processes share. */
export interface RateBookings {
  /** Resolves when the store has counted the granted and the waiting requests of the window. */
  book(window: RateWindow): Promise<void>
  /** Does the same in the background. If it fails, the requests are counted with later ones. */
  bookLater(window: RateWindow): void
}

interface Batch {
  readonly windows: Set<RateWindow>
  readonly done: Promise<void>
}

/** Windows that ended this long ago are deleted: no clock of another process is that late. */
const keepMs = 60_000

/** One statement runs at a time. The next one adds all counts that came meanwhile. */
export function createRateBookings(ports: {
  readonly store: RateStore
  readonly clock: Clock
  readonly log: Logger
}): RateBookings {
  const { store, clock, log } = ports
  let collecting: Batch | undefined
  let last: Promise<unknown> = Promise.resolve()
  let cleanedAt = clock.now().getTime()

  const beginBatch = (): Batch => {
    const windows = new Set<RateWindow>()
    const previous = last
    const write = async () => {
      await previous
      collecting = undefined
      await addCounts(ports, windows)
    }
    const done = write()
    last = done.then(clean).catch((error: unknown) => {
      log.warn({ err: error }, 'requests of rate limits could not be counted for all apis')
    })
    return { windows, done }
  }
  const clean = async (): Promise<void> => {
    const now = clock.now().getTime()
    if (Math.abs(now - cleanedAt) < keepMs) return
    cleanedAt = now
    await store.deleteEndedBefore(new Date(now - keepMs))
  }
  const add = (window: RateWindow): Batch => {
    collecting ??= beginBatch()
    collecting.windows.add(window)
    return collecting
  }
  return {
    book: (window) => add(window).done,
    bookLater: (window) => void add(window),
  }
}

async function addCounts(
  { store, clock }: { readonly store: RateStore; readonly clock: Clock },
  windows: ReadonlySet<RateWindow>,
): Promise<void> {
  const now = clock.now()
  const bookings = [...windows].map((window) => begin(window, now)).filter(isNeeded)
  if (bookings.length === 0) return
  try {
    const counts = bookings.map(({ window, waiting }) => {
      const { teamId, operationId, beingBooked, limit, endsAt } = window
      const requests = beingBooked + waiting
      const { seconds } = limit
      return { teamId, operationId, requests, seconds, endsAt: new Date(endsAt) }
    })
    const shared = new Map((await store.add(counts, now)).map((one) => [keyOf(one), one]))
    for (const booking of bookings) finish(booking, shared.get(keyOf(booking.window)), now)
  } catch (error) {
    // The store may have counted them: then they count twice, and the limit is stricter for this window.
    for (const { window } of bookings) window.unbooked += window.beingBooked
    throw error
  } finally {
    for (const { window } of bookings) window.beingBooked = 0
  }
}

interface Booking {
  readonly window: RateWindow
  readonly waiting: number
}

function begin(window: RateWindow, now: Date): Booking {
  renew(window, now.getTime())
  const { waiting, unbooked } = window
  window.waiting = 0
  window.unbooked = 0
  window.beingBooked = unbooked
  return { window, waiting }
}

function isNeeded({ window, waiting }: Booking): boolean {
  return window.beingBooked + waiting > 0
}

function finish({ window, waiting }: Booking, shared: SharedWindow | undefined, now: Date): void {
  if (!shared) throw new Error('the store returned no window for a count')
  const { seconds, requests } = window.limit
  // Waiting requests count last, so they are the ones above the limit.
  const excess = Math.max(shared.requests - requests, 0)
  window.granted += Math.max(waiting - excess, 0)
  window.booked = shared.requests
  window.endsAt = Math.min(shared.endsAt.getTime(), now.getTime() + seconds * 1000)
}

function keyOf(window: { readonly teamId: string; readonly operationId: string }): string {
  return `${window.teamId} ${window.operationId}`
}
