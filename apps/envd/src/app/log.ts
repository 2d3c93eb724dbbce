/**
 * The log of the sandbox, as far as the node has not fetched it yet. It is held in memory, in a bounded amount: when
 * nobody fetches it, the oldest entries go first. What is lost, here or before, is told in an entry of its own.
 *
 * Every entry has a millisecond to itself, so that a time names the entries before and after it exactly. In a burst the
 * times run ahead of the clock, by less than two seconds.
 */
import type { Clock } from '@atoll/kit/clock'
import { createAllowance } from '../domain/sandbox/log.ts'
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
  const count = createAllowance(entryLimit, deps.nowMs)
  const size = createAllowance(sizeLimit, deps.nowMs)
  const kept: Entry[] = []
  let keptSize = 0
  let lastAt = 0
  let lost = { entries: 0, bytes: 0 }

  const hasRoom = () => count.isLeft() && size.isLeft()

  function keep(level: LogLevel, message: string, fields: LogFields): void {
    lastAt = Math.max(deps.clock.now().getTime(), lastAt + 1)
    const text = JSON.stringify({ at: lastAt, level, message, fields })
    kept.push({ at: lastAt, text })
    keptSize += text.length
    count.use(1)
    size.use(text.length)
    while (keptSize > heldSize) {
      drop()
      lost.entries += 1
    }
  }

  function drop(): void {
    keptSize -= kept.shift()?.text.length ?? 0
  }

  function tellLosses(): void {
    const { entries, bytes } = lost
    if (entries === 0 && bytes === 0) return
    lost = { entries: 0, bytes: 0 }
    keep('warn', `Too much at once: ${entries} entries and ${bytes} bytes of output left out`, {
      logger: 'envd',
      entries: String(entries),
      bytes: String(bytes),
    })
  }

  return {
    write(level, message, fields) {
      if (hasRoom()) keep(level, message, fields)
      else lost.entries += 1
    },
    hasRoom,
    skip(bytes) {
      lost.bytes += bytes
    },
    takeAfter(ms) {
      tellLosses()
      while (kept[0] !== undefined && kept[0].at <= ms) drop()
      let held = 0
      const entries = kept.filter(({ text }) => (held += text.length) <= answerSize)
      return { entries: entries.map(({ text }) => text), more: entries.length < kept.length }
    },
    clear() {
      kept.length = 0
      keptSize = 0
      lost = { entries: 0, bytes: 0 }
    },
  }
}

interface Entry {
  readonly at: number
  readonly text: string
}

// The node comes about once a second: what may be written until then fits into what is held, and that into two answers.
const entryLimit = { atOnce: 1000, perSecond: 200 }
const sizeLimit = { atOnce: 256 * 1024, perSecond: 100 * 1024 }
const heldSize = 512 * 1024
const answerSize = 256 * 1024
