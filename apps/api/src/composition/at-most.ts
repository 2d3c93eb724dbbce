import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for the work, but not longer than the limit. */
export async function atMost(limitMs: number, work: Promise<void>): Promise<void> {
  await Promise.race([work, sleep(limitMs, undefined, { ref: false })])
}
