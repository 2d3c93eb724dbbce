import type { Libc } from './libc.ts'

/** Sets the system clock. Does nothing where that is impossible or not permitted; the host then keeps the clock. */
export function stepSystemClock(libc: () => Pick<Libc, 'setClock'>): (to: Date) => Promise<void> {
  return async (to) => {
    const seconds = Math.floor(to.getTime() / 1000)
    const nanoseconds = (to.getTime() - seconds * 1000) * 1_000_000
    const time = BigInt64Array.of(BigInt(seconds), BigInt(nanoseconds))
    try {
      libc().setClock(realTime, new Uint8Array(time.buffer))
    } catch {}
  }
}

/** CLOCK_REALTIME. */
const realTime = 0
