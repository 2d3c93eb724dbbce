import { keptEntry } from '../../domain/builds/build-log.ts'
import type { BuildLogEntry, BuildLogStore } from '../../domain/builds/build-log.ts'

/** Writes the log of one build. Every write costs the store a disk sync, so entries are written in batches. */
export interface BuildLog {
  /** Waits only when a full batch has to be written. */
  add(entry: BuildLogEntry): Promise<void>
  /** Writes all pending entries. */
  flush(): Promise<void>
}

const batchDelayMs = 100
const batchSize = 500

/** Entries that the store fails to write are dropped; the build continues. */
export function createBuildLog(
  store: BuildLogStore,
  buildId: string,
  onDropped: (error: unknown) => void,
): BuildLog {
  let pending: BuildLogEntry[] = []
  let position = 0
  let timer: NodeJS.Timeout | undefined
  let written = Promise.resolve()

  const write = (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    const batch = pending
    pending = []
    if (batch.length === 0) return written
    const first = position - batch.length
    written = written.then(() => store.append(buildId, first, batch)).catch(onDropped)
    return written
  }

  return {
    async add(entry) {
      const kept = keptEntry(entry, position)
      if (!kept) return
      pending.push(kept)
      position += 1
      if (pending.length >= batchSize) await write()
      else timer ??= setTimeout(() => void write(), batchDelayMs)
    },
    flush: write,
  }
}
