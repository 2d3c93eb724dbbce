import { keptEntry } from '../domain/build-log.ts'
import type { BuildLogEntry, BuildLogStore } from '../domain/build-log.ts'

/** Writes what one build says. Each write costs the store a sync of its disk, so entries go there together. */
export interface BuildLog {
  /** Waits only when there is much to write. */
  add(entry: BuildLogEntry): Promise<void>
  /** Returns once all is written. */
  flush(): Promise<void>
}

const gatherMs = 100
const mostGathered = 500

/** What the store does not take is lost, and the build goes on. */
export function createBuildLog(
  store: BuildLogStore,
  buildId: string,
  onLost: (error: unknown) => void,
): BuildLog {
  let gathered: BuildLogEntry[] = []
  let position = 0
  let timer: NodeJS.Timeout | undefined
  let written = Promise.resolve()

  const write = (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    const batch = gathered
    gathered = []
    if (batch.length === 0) return written
    const first = position - batch.length
    written = written.then(() => store.append(buildId, first, batch)).catch(onLost)
    return written
  }

  return {
    async add(entry) {
      const kept = keptEntry(entry, position)
      if (!kept) return
      gathered.push(kept)
      position += 1
      if (gathered.length >= mostGathered) await write()
      else timer ??= setTimeout(() => void write(), gatherMs)
    },
    flush: write,
  }
}
