import { Fault } from '@atoll/kit/fault'

/** Files on this node that the object store has too, as far as this node knows. */
export interface CachedFiles {
  /** Such as `snapshots/abc`. */
  readonly name: string
  readonly sizeBytes: number
  readonly usedAtMs: number
  /** Asks the store, then removes the files. */
  evict(signal: AbortSignal): Promise<EvictionOutcome>
}

/** `used`: something works with the files. `missing`: the store does not have all of it. Both keep the files. */
export type EvictionOutcome = 'evicted' | 'used' | 'missing'

export interface EvictionPasses {
  /** Evicts what is due, within the limits of a pass. Returns whether more may be due. */
  run(signal: AbortSignal): Promise<boolean>
}

/** Bounds the work of a pass: each attempt asks the store a few questions. */
const mostTried = 32
/** Removals take effect some time later, and a low disk should not cost more files than it takes. */
const mostForSpace = 2
const delayMs = { used: 60_000, missing: 600_000, failed: 600_000 }

/**
 * Passes that remove files which the object store has too, the least recently used first: beyond a limit, and while the disk
 * is low. Files that cannot go now are left out for some time. When the store does not answer, the pass ends.
 */
export function createEvictionPasses(ports: {
  /** Undefined: no limit. */
  readonly limitBytes: number | undefined
  isDiskLow(): boolean
  findFiles(): Promise<readonly CachedFiles[]>
  nowMs(): number
  onOutcome(files: CachedFiles, outcome: EvictionOutcome): void
  onError(error: unknown, name: string): void
}): EvictionPasses {
  const { limitBytes = Number.POSITIVE_INFINITY, isDiskLow, nowMs, onOutcome, onError } = ports
  const notBeforeMs = new Map<string, number>()

  async function attempt(
    files: CachedFiles,
    signal: AbortSignal,
  ): Promise<EvictionOutcome | 'failed' | 'stopped'> {
    try {
      const outcome = await files.evict(signal)
      onOutcome(files, outcome)
      return outcome
    } catch (error) {
      if (signal.aborted) return 'stopped'
      onError(error, files.name)
      return isOutage(error) ? 'stopped' : 'failed'
    }
  }

  /** Returns the files that may be tried now, and forgets delays of files that are not there any more. */
  function due(files: readonly CachedFiles[]): readonly CachedFiles[] {
    const names = new Set(files.map(({ name }) => name))
    for (const name of notBeforeMs.keys()) if (!names.has(name)) notBeforeMs.delete(name)
    return files
      .filter(({ name }) => (notBeforeMs.get(name) ?? 0) <= nowMs())
      .toSorted((a, b) => a.usedAtMs - b.usedAtMs)
  }

  return {
    async run(signal) {
      if (limitBytes === Number.POSITIVE_INFINITY && !isDiskLow()) return false
      const files = await ports.findFiles()
      let totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
      let [tried, evicted] = [0, 0]
      for (const one of due(files)) {
        const isOver = totalBytes > limitBytes
        if (signal.aborted || (!isOver && !isDiskLow())) return false
        if (tried >= mostTried || (!isOver && evicted >= mostForSpace)) return true
        tried += 1
        const outcome = await attempt(one, signal)
        if (outcome === 'stopped') return false
        if (outcome === 'evicted') {
          evicted += 1
          totalBytes -= one.sizeBytes
        } else {
          notBeforeMs.set(one.name, nowMs() + delayMs[outcome])
        }
      }
      return false
    },
  }
}

function isOutage(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'objects_unavailable'
}
