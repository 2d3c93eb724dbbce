import type { Clock } from '@atoll/kit/clock'
import type { Sandbox } from '../domain/sandboxes/sandbox.ts'

/** Called with a sandbox that has a new end time. */
export type OnEndChanged = (sandbox: Pick<Sandbox, 'endAt'>) => void

/** Upper bound on the wait between two expiry passes: the system clock may jump, and a nudge may be missed. */
export const longestExpiryWaitMs = 1_000

/**
 * Returns a function that calls `nudge` if the sandbox ends before the next expiry pass is due. Most sandboxes end later, and
 * a pass after each create would load the store more than the create does.
 */
export function createEndChanges(clock: Clock, nudge: () => void): OnEndChanged {
  return ({ endAt }) => {
    if (endAt && endAt.getTime() - clock.now().getTime() < longestExpiryWaitMs) nudge()
  }
}
