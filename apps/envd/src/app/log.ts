/**
 * Log of the sandbox, buffered until the node fetches it. The buffer is bounded: past the limit the oldest entries
 * are dropped, and an entry reports how many.
 *
 * Every entry has a unique millisecond, so that a time identifies a position in the log. In a burst, times run
 * ahead of the clock by less than two seconds.
 */
import type { Clock } from '@atoll/kit/clock'
import { createTokenBucket } from '../domain/sandbox/log.ts'
import type { Log, LogFields, LogLevel } from '../domain/sandbox/log.ts'

export interface SandboxLog extends Log {
  /** Whether the rate limits allow an entry now. */
  canWrite(): boolean
  /** Counts output that was dropped before it reached the log. */
  countDropped(bytes: number): void
  /**
   * Returns the oldest entries later than `ms` as JSON, up to the size limit of a response. Entries up to `ms` are
   * deleted.
   */
  readAfter(ms: number): { readonly entries: readonly string[]; readonly more: boolean }
  clear(): void
}

export interface LogDeps {
  readonly clock: Clock
  /** Monotonic clock. */
  readonly nowMs: () => number
}

export function createLog(deps: LogDeps): SandboxLog {
  const count = createTokenBucket(entryLimit, deps.nowMs)
  const size = createTokenBucket(sizeLimit, deps.nowMs)
  const buffered: Entry[] = []
  let bufferedBytes = 0
  let lastTimeMs = 0
  let dropped = { entries: 0, bytes: 0 }

  const canWrite = () => count.hasTokens() && size.hasTokens()

  function append(level: LogLevel, message: string, fields: LogFields): void {
    lastTimeMs = Math.max(deps.clock.now().getTime(), lastTimeMs + 1)
    const text = JSON.stringify({ at: lastTimeMs, level, message, fields })
    buffered.push({ at: lastTimeMs, text })
    bufferedBytes += text.length
    count.spend(1)
    size.spend(text.length)
    while (bufferedBytes > bufferLimitBytes) {
      dropOldest()
      dropped.entries += 1
    }
  }

  function dropOldest(): void {
    bufferedBytes -= buffered.shift()?.text.length ?? 0
  }

  function reportDropped(): void {
    const { entries, bytes } = dropped
    if (entries === 0 && bytes === 0) return
    dropped = { entries: 0, bytes: 0 }
    const message = `Log rate limit exceeded: dropped ${entries} entries and ${bytes} bytes of output`
    append('warn', message, { logger: 'envd', entries: String(entries), bytes: String(bytes) })
  }

  return {
    write(level, message, fields) {
      if (canWrite()) append(level, message, fields)
      else dropped.entries += 1
    },
    canWrite,
    countDropped(bytes) {
      dropped.bytes += bytes
    },
    readAfter(ms) {
      reportDropped()
      while (buffered[0] !== undefined && buffered[0].at <= ms) dropOldest()
      let bytes = 0
      const entries = buffered.filter(({ text }) => (bytes += text.length) <= responseLimitBytes)
      return { entries: entries.map(({ text }) => text), more: entries.length < buffered.length }
    },
    clear() {
      buffered.length = 0
      bufferedBytes = 0
      dropped = { entries: 0, bytes: 0 }
    },
  }
}

interface Entry {
  readonly at: number
  readonly text: string
}

// The node fetches about once a second. The buffer holds what the rate limits allow in that time, and fits into two
// responses.
const entryLimit = { burst: 1000, perSecond: 200 }
const sizeLimit = { burst: 256 * 1024, perSecond: 100 * 1024 }
const bufferLimitBytes = 512 * 1024
const responseLimitBytes = 256 * 1024
