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

/** A server that is away for a moment is asked again; a sandbox that is gone shows in its own stream. */
function tolerate(thrown: unknown): void {
  if (!(thrown instanceof Fault)) throw thrown
}
