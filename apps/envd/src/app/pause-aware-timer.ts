/**
 * Timer that does not count time while the sandbox is paused. The clock continues during a pause, so a plain timer
 * with a minute left would expire at the resume. envd gets no notice of a pause, but a timer that is many seconds
 * late was paused, however busy the machine.
 */
export interface PauseAwareTimer {
  stop(): void
}

export function startPauseAwareTimer(
  ms: number,
  onExpire: () => void,
  /** Monotonic clock. */
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
