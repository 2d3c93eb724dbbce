/** What the daemon writes down about its sandbox, and how much of it at once. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type LogFields = Readonly<Record<string, string>>

/** Where events go. Writing never fails and never waits: what is too much is counted instead of kept. */
export interface Log {
  write(level: LogLevel, message: string, fields: LogFields): void
}

/** An amount that may be used at once and comes back over time. */
export interface TokenBucket {
  /** Whether anything is left now. */
  hasTokens(): boolean
  /** May go below zero by one use, so that nothing is too large to be ever allowed. */
  spend(amount: number): void
}

export function createTokenBucket(
  limit: { readonly burst: number; readonly perSecond: number },
  nowMs: () => number,
): TokenBucket {
  let left = limit.burst
  let at = nowMs()
  return {
    hasTokens() {
      const now = nowMs()
      left = Math.min(limit.burst, left + ((now - at) / 1000) * limit.perSecond)
      at = now
      return left > 0
    },
    spend(amount) {
      left -= amount
    },
  }
}

/** Text of which the reader needs the beginning. */
export function truncate(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (${text.length - limit} more)`
}
