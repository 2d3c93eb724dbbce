/**
 * Estimates how many sandboxes of one shape to keep pre-warmed: the recent peak number of requests within ten seconds.
 * The peak decays with a half-life of two minutes.
 */
export interface Demand {
  /** Records one request. */
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
      recent = [...recent.filter((at) => at > nowMs - windowMs), nowMs].slice(-maxCounted)
      if (recent.length < current(nowMs)) return
      peak = recent.length
      peakAt = nowMs
    },

    // Rounding lets an unused shape fall back to the floor.
    level: (nowMs) => Math.max(floor, Math.round(current(nowMs))),
  }
}

const maxCounted = 256

/** Demand that begins with the second request within a minute: most snapshots are used once. */
export function createRepeatedDemand(): Demand {
  const demand = createDemand(0)
  let lastMs = -Infinity
  return {
    note(nowMs) {
      if (nowMs - lastMs <= repeatedWithinMs) demand.note(nowMs)
      lastMs = nowMs
    },
    level: demand.level,
  }
}

export const repeatedWithinMs = 60_000
