/**
 * The log of the sandbox, as far as the node has not fetched it yet. It is held in memory, in a bounded amount: when
 * nobody fetches it, the oldest entries go first. What is lost, here or before, is told in an entry of its own.
 *
 * Every entry has a millisecond to itself, so that a time names the entries before and after it exactly. In a burst the
 * times run ahead of the clock, by less than two seconds.
 */
import type { Clock } from '@atoll/kit/clock'
import { createTokenBucket } from '../domain/sandbox/log.ts'
import type { Log, LogFields, LogLevel } from '../domain/sandbox/log.ts'

export interface SandboxLog extends Log {
  /** Whether an entry would be kept now. */
  hasRoom(): boolean
  /** So much output was left out. */
  skip(bytes: number): void
  /** The oldest entries later than this, each as JSON, as many as one answer may hold. All others are forgotten. */
  takeAfter(ms: number): { readonly entries: readonly string[]; readonly more: boolean }
  clear(): void
}

export function createLog(deps: {
  readonly clock: Clock
  /** Monotonic. */
  readonly nowMs: () => number
}): SandboxLog {
  const count = createTokenBucket(entryLimit, deps.nowMs)
  const size = createTokenBucket(sizeLimit, deps.nowMs)
  const buffered: Entry[] = []
  let bufferedBytes = 0
  let lastTimeMs = 0
  let dropped = { entries: 0, bytes: 0 }

  const hasRoom = () => count.hasTokens() && size.hasTokens()

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
    append('warn', `Too much at once: ${entries} entries and ${bytes} bytes of output left out`, {
      logger: 'envd',
      entries: String(entries),
      bytes: String(bytes),
    })
  }

  return {
    write(level, message, fields) {
      if (hasRoom()) append(level, message, fields)
      else dropped.entries += 1
    },
    hasRoom,
    skip(bytes) {
      dropped.bytes += bytes
    },
    takeAfter(ms) {
      reportDropped()
      while (buffered[0] !== undefined && buffered[0].at <= ms) dropOldest()
      let held = 0
      const entries = buffered.filter(({ text }) => (held += text.length) <= responseLimitBytes)
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

// The node comes about once a second: what may be written until then fits into what is held, and that into two answers.
const entryLimit = { burst: 1000, perSecond: 200 }
const sizeLimit = { burst: 256 * 1024, perSecond: 100 * 1024 }
const bufferLimitBytes = 512 * 1024
const responseLimitBytes = 256 * 1024
