import { setInterval } from 'node:timers/promises'
import { Fault } from '@atoll/kit/fault'

/** Calls `extend` at every interval until the signal aborts. */
export async function keepAlive(
  extend: () => Promise<unknown>,
  intervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const _ of setInterval(intervalMs, undefined, { signal, ref: false })) {
      await extend().catch(tolerate)
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown
  }
}

/** Ignores faults: the next interval retries, and the process stream reports a sandbox that has ended. */
function tolerate(thrown: unknown): void {
  if (!(thrown instanceof Fault)) throw thrown
}
