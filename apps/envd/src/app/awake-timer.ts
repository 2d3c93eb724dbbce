/**
 * A timer that counts only while the sandbox runs: its clock goes on when it is paused, so that a program with a minute
 * left would be out of time the moment it comes back. Nobody tells us of a pause. But a timer that is many seconds late was
 * paused, however busy the machine.
 */
export interface AwakeTimer {
  stop(): void
}

export function startAwakeTimer(
  ms: number,
  act: () => void,
  /** Monotonic. */
  nowMs: () => number,
): AwakeTimer {
  let leftMs = ms
  let timer = wait()
  return { stop: () => clearTimeout(timer) }

  function wait(): NodeJS.Timeout {
    const sliceMs = Math.min(leftMs, longestSliceMs)
    const since = nowMs()
    return setTimeout(() => {
      const passedMs = nowMs() - since
      leftMs -= passedMs > sliceMs + pauseMs ? sliceMs : passedMs
      if (leftMs > 0) timer = wait()
      else act()
    }, sliceMs)
  }
}

const longestSliceMs = 5000
const pauseMs = 5000
