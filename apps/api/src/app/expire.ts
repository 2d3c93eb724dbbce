import type { Clock } from '@atoll/kit/clock'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { Ending } from './ending.ts'

/** However far the next end is: clocks are set, and nudges may be missed. */
const longestWaitMs = 1_000
const batch = 100

/** One pass: ends what is due, returns the milliseconds until the next end. */
export async function expireSandboxes(deps: {
  readonly store: SandboxStore
  readonly ending: Ending
  readonly clock: Clock
}): Promise<number> {
  const { store, ending, clock } = deps
  const due = await store.listExpired(clock.now(), batch)
  for (const id of due) {
    const isDue = await ending.begin(
      id,
      'reached the end of its timeout',
      // Its time may have been extended since the list was read.
      ({ endAt }) => endAt !== undefined && endAt <= clock.now(),
    )
    if (isDue) void ending.tryFinish(id)
  }
  const next = await store.nextEnd()
  if (!next) return longestWaitMs
  return Math.min(Math.max(next.getTime() - clock.now().getTime(), 0), longestWaitMs)
}
