/**
 * A timer that counts only while the sandbox runs: its clock goes on when it is paused, so that a program with a minute
 * left would be out of time the moment it comes back. Nobody tells us of a pause. But a timer that is many seconds late was
 * paused, however busy the machine.
 */
export interface PauseAwareTimer {
  stop(): void
}

export function startPauseAwareTimer(
  ms: number,
  onExpire: () => void,
  /** Monotonic. */
  nowMs: () => number,
): PauseAwareTimer {
  let remainingMs = ms
  let timer = wait()
  return { stop: () => clearTimeout(timer) }

  function wait(): NodeJS.Timeout {
    const sliceMs = Math.min(remainingMs, maxSliceMs)
    const since = nowMs()
    return setTimeout(() => {
      const passedMs = nowMs() - since
      remainingMs -= passedMs > sliceMs + pauseThresholdMs ? sliceMs : passedMs
      if (remainingMs > 0) timer = wait()
      else onExpire()
    }, sliceMs)
  }
}

const maxSliceMs = 5000
const pauseThresholdMs = 5000
