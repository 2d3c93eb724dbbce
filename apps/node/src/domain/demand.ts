/**
 * How many sandboxes of one shape are worth keeping ready: as many as were wanted within ten seconds lately. What was
 * lately is forgotten by half every two minutes.
 */
export interface Demand {
  /** One more was wanted. */
  note(nowMs: number): void
  level(nowMs: number): number
}

const windowMs = 10_000
const halfLifeMs = 120_000

export function createDemand(floor: number): Demand {
  let peak = 0
  let peakAt = 0
  let recent: number[] = []

  function current(nowMs: number): number {
    return peak * 0.5 ** ((nowMs - peakAt) / halfLifeMs)
  }

  return {
    note(nowMs) {
      recent = [...recent.filter((at) => at > nowMs - windowMs), nowMs].slice(-mostCounted)
      if (recent.length < current(nowMs)) return
      peak = recent.length
      peakAt = nowMs
    },

    // Half a sandbox lately is none: without use the level comes down to the floor.
    level: (nowMs) => Math.max(floor, Math.round(current(nowMs))),
  }
}

const mostCounted = 256
