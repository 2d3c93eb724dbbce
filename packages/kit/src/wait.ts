import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from './fault.ts'

/** Polls until `probe` returns a value other than undefined or false. Throws a `timeout` fault after the limit. */
export async function waitFor<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: {
    readonly timeoutMs?: number
    readonly intervalMs?: number
    readonly signal?: AbortSignal
  } = {},
): Promise<T> {
  const { timeoutMs = 120_000, intervalMs = 20, signal } = options
  const deadline = performance.now() + timeoutMs
  for (;;) {
    signal?.throwIfAborted()
    const value = await probe()
    if (value !== undefined && value !== false) return value
    if (performance.now() > deadline) {
      throw new Fault(
        'timeout',
        'wait_timeout',
        `Timed out after ${timeoutMs} ms waiting for ${what}`,
      )
    }
    await sleep(intervalMs, undefined, signal ? { signal } : {})
  }
}
