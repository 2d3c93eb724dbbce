/** Limits how many messages a page may send. Beyond the limit its connection is read more slowly, and nothing is lost. */
export interface MessageRate {
  /** Returns for how many milliseconds to stop reading after this message. */
  count(nowMs: number): number
}

const perSecond = 1_000
const burst = 2_000

export function createMessageRate(limits = { perSecond, burst }): MessageRate {
  let tokens = limits.burst
  let countedAt: number | undefined
  return {
    count(nowMs) {
      const elapsedMs = Math.max(0, nowMs - (countedAt ?? nowMs))
      countedAt = nowMs
      tokens = Math.min(limits.burst, tokens + (elapsedMs / 1_000) * limits.perSecond) - 1
      return tokens >= 0 ? 0 : Math.ceil((-tokens / limits.perSecond) * 1_000)
    },
  }
}
