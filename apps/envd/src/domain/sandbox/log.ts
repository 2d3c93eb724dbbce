/** What the daemon writes down about its sandbox, and how much of it at once. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type LogFields = Readonly<Record<string, string>>

/** Where events go. Writing never fails and never waits: what is too much is counted instead of kept. */
export interface Log {
  write(level: LogLevel, message: string, fields: LogFields): void
}

/** An amount that may be used at once and comes back over time. */
export interface Allowance {
  /** Whether anything is left now. */
  isLeft(): boolean
  /** May go below zero by one use, so that nothing is too large to be ever allowed. */
  use(amount: number): void
}

export function createAllowance(
  limit: { readonly atOnce: number; readonly perSecond: number },
  nowMs: () => number,
): Allowance {
  let left = limit.atOnce
  let at = nowMs()
  return {
    isLeft() {
      const now = nowMs()
      left = Math.min(limit.atOnce, left + ((now - at) / 1000) * limit.perSecond)
      at = now
      return left > 0
    },
    use(amount) {
      left -= amount
    },
  }
}

/** Text of which the reader needs the beginning. */
export function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (${text.length - limit} more)`
}
