/**
 * Takes a node out of placement while creates fail on it, and lets it back by probes. A full node is not broken: refusals
 * for lack of capacity do not count.
 */
export interface CircuitBreaker {
  /**
   * Whether the node may get a new sandbox at this time. While the circuit is half open, only one at a time may: call
   * `begin` to claim it.
   */
  isClosed(nowMs: number): boolean
  begin(nowMs: number): void
  succeeded(): void
  failed(nowMs: number): void
  /** The outcome says nothing about the node. */
  undecided(): void
}

/** Failures in a row that open the circuit. */
const failureLimit = 3
const firstPauseMs = 5_000
const longestPauseMs = 60_000

export function createCircuitBreaker(): CircuitBreaker {
  let failures = 0
  let pauseMs = firstPauseMs
  /** Undefined while the circuit is closed. */
  let probeAtMs: number | undefined
  let isProbing = false

  return {
    isClosed(nowMs) {
      if (probeAtMs === undefined) return true
      return nowMs >= probeAtMs && !isProbing
    },
    begin(nowMs) {
      if (probeAtMs !== undefined && nowMs >= probeAtMs) isProbing = true
    },
    succeeded() {
      failures = 0
      pauseMs = firstPauseMs
      probeAtMs = undefined
      isProbing = false
    },
    failed(nowMs) {
      failures += 1
      if (failures < failureLimit) return
      if (isProbing) pauseMs = Math.min(pauseMs * 2, longestPauseMs)
      isProbing = false
      probeAtMs = nowMs + pauseMs
    },
    undecided() {
      isProbing = false
    },
  }
}
