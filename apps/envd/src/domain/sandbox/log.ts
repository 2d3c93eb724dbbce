/** Log entries of the sandbox and their rate limit. */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type LogFields = Readonly<Record<string, string>>

/** Writing never fails and never blocks; entries past the rate limit are counted and dropped. */
export interface Log {
  write(level: LogLevel, message: string, fields: LogFields): void
}

/** Token bucket: allows bursts and refills over time. */
export interface TokenBucket {
  hasTokens(): boolean
  /** May overdraw the bucket once, so that no single amount is too large. */
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

export function truncate(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (${text.length - limit} more)`
}
