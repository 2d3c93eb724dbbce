import { setTimeout as sleep } from 'node:timers/promises'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { LogFiles, PrintedLine } from '../../domain/sandboxes/log.ts'

interface PrintedLinesPorts {
  readonly files: Pick<LogFiles, 'lastPrinted'>
  /** Whether the sandbox is running or paused here. */
  isHere(sandboxId: string): boolean
  /** Serializes tasks per sandbox, as the files require. */
  inTurn(sandboxId: string, task: () => Promise<void>): Promise<void>
  /** Receives failed reads. The other lines are listed all the same. */
  onError(error: unknown): void
}

/** Files read at a time. */
const readsAtOnce = 8
/** Maximum wait for files. A later question finds the lines that are missing now. */
const momentMs = 500

/**
 * Keeps the last printed line of each sandbox of this machine in memory, so that a list of sandboxes shows it without
 * reading files. Only the first question about a sandbox after a start of the agent reads its log.
 */
export function createPrintedLines({ files, isHere, inTurn, onError }: PrintedLinesPorts) {
  const lines = new Map<string, PrintedLine | undefined>()
  const gate = limitConcurrency(readsAtOnce)

  /** Called in the sandbox's turn. */
  const refresh = async (sandboxId: string): Promise<void> => {
    const line = await files.lastPrinted(sandboxId)
    if (isHere(sandboxId)) lines.set(sandboxId, line)
  }

  return {
    refresh,
    release: (sandboxId: string) => void lines.delete(sandboxId),
    async list(sandboxIds: readonly string[]): Promise<ReadonlyMap<string, PrintedLine>> {
      const here = sandboxIds.filter(isHere)
      const unknown = here.filter((sandboxId) => !lines.has(sandboxId))
      const read = unknown.map((sandboxId) =>
        gate(() => inTurn(sandboxId, () => refresh(sandboxId))).catch(onError),
      )
      // A turn may be taken by a request to a sandbox that does not answer.
      if (read.length > 0) await Promise.race([Promise.all(read), sleep(momentMs)])
      const found = here.flatMap((sandboxId) => {
        const line = lines.get(sandboxId)
        return line ? [[sandboxId, line] as const] : []
      })
      return new Map(found)
    },
  }
}
