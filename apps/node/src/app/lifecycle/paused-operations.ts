import { Fault } from '@atoll/kit/fault'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import { isSameContent } from '../../domain/sandboxes/content-name.ts'
import type { ContentName } from '../../domain/sandboxes/content-name.ts'
import { isEvicted } from '../../domain/sandboxes/sandbox.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { newCellId } from './cells.ts'
import type { KeyedQueue } from './keyed-queue.ts'
import type { Releases } from './releases.ts'
import type { SandboxRegistry } from './sandbox-registry.ts'
import type { SupersededCells } from './superseded-cells.ts'

/** Operations on the files of paused sandboxes, for uploads, fetches, evictions and backups. */
export interface PausedOperations {
  /** Runs `task` for every sandbox that is paused now. Operations requested later wait for the task of their sandbox. */
  forEachPaused(task: (record: PausedSandbox) => Promise<void>): Promise<void>
  /**
   * Runs `task` if the sandbox is paused, before any operation that is requested later. Returns undefined if it is not.
   */
  whilePaused<T>(
    sandboxId: string,
    task: (record: PausedSandbox) => Promise<T>,
  ): Promise<T | undefined>
  /**
   * Takes over a paused sandbox from the object store. `fetch` adds its cell to this node. Older content that this node has,
   * and the record of evicted files, are removed after that.
   */
  adopt(request: AdoptRequest, fetch: () => Promise<PausedSandbox>): Promise<void>
  /**
   * Removes the files of a paused sandbox, which stays paused. The caller has made sure that the object store has this
   * content. Returns false, and removes nothing, if the sandbox has other content by now, or another operation on it runs.
   */
  evict(paused: PausedSandbox): Promise<boolean>
}

export interface AdoptRequest extends ContentName {
  readonly sandboxId: string
  readonly generation: number
}

export interface PausedPorts {
  readonly records: { create(record: CellRecord): Promise<void> }
}

interface PausedParts {
  readonly ports: PausedPorts
  readonly registry: SandboxRegistry
  readonly queue: Pick<KeyedQueue, 'run' | 'isBusy'>
  readonly releases: Releases
  readonly superseded: Pick<SupersededCells, 'retire' | 'clear'>
}

export function createPausedOperations(parts: PausedParts): PausedOperations {
  const { registry, queue, releases } = parts
  return {
    forEachPaused: (task) => runForPaused(parts, task),

    whilePaused: (sandboxId, task) =>
      queue.run(sandboxId, async () => {
        await releases.finished(sandboxId)
        const record = registry.paused.get(sandboxId)
        return record && task(record)
      }),

    adopt: (request, fetch) =>
      queue.run(request.sandboxId, async () => {
        registry.checkGeneration(request.sandboxId, request.generation)
        await releases.finished(request.sandboxId)
        await adoptPaused(parts, request, fetch)
      }),

    async evict(paused) {
      const { sandboxId } = paused.owner
      // An eviction must not abort an inspection, nor wait for an operation that changes the sandbox anyway.
      if (queue.isBusy(sandboxId)) return false
      return queue.run(sandboxId, async () => {
        await releases.finished(sandboxId)
        return evictPaused(parts, paused)
      })
    },
  }
}

async function runForPaused(
  { registry: { paused }, queue, releases }: PausedParts,
  task: (record: PausedSandbox) => Promise<void>,
): Promise<void> {
  // Queue all tasks in one step: operations that are requested from now on come later.
  const done = [...paused.keys()].map((sandboxId) =>
    queue.run(sandboxId, async () => {
      await releases.finished(sandboxId)
      const record = paused.get(sandboxId)
      if (record) await task(record)
    }),
  )
  await Promise.all(done)
}

async function adoptPaused(
  { registry, superseded }: PausedParts,
  request: AdoptRequest,
  fetch: () => Promise<PausedSandbox>,
): Promise<void> {
  const { sandboxId, keptGeneration } = request
  const earlier = registry.paused.get(sandboxId)
  const isSame = earlier !== undefined && isSameContent(earlier, request)
  if (isSame && !isEvicted(earlier)) return
  // Content without a number, or of another pause with the same number, cannot be compared, so it is kept.
  const isOlder = earlier?.keptGeneration !== undefined && earlier.keptGeneration < keptGeneration
  if (earlier && !isSame && !isOlder) throw notOlder(earlier, keptGeneration)
  if (!earlier) registry.checkUnused(sandboxId)
  // Only one folder of a sandbox may wait for its removal.
  await superseded.clear(sandboxId)
  registry.paused.set(sandboxId, await fetch())
  if (earlier) await superseded.retire(sandboxId, earlier.cellId)
}

/**
 * The new record exists before the folder with the files loses its name: after a crash in between, the next start keeps the
 * files and removes the record.
 */
async function evictPaused(
  { ports, registry, superseded }: PausedParts,
  paused: PausedSandbox,
): Promise<boolean> {
  const { sandboxId } = paused.owner
  const current = registry.paused.get(sandboxId)
  const isSame = current?.cellId === paused.cellId && isSameContent(current, paused)
  if (!current || !isSame || isEvicted(current)) return false
  await superseded.clear(sandboxId)
  const { process: _process, slotNumber: _slot, ...kept } = current
  const evicted: PausedSandbox = { ...kept, cellId: newCellId(), phase: 'evicted' }
  await ports.records.create(evicted)
  registry.paused.set(sandboxId, evicted)
  await superseded.retire(sandboxId, current.cellId)
  return true
}

function notOlder({ owner, keptGeneration }: PausedSandbox, wanted: number): Fault {
  const known = keptGeneration === undefined ? 'unknown' : `${keptGeneration}`
  return new Fault(
    'conflict',
    'content_not_older',
    `A node has content of sandbox ${owner.sandboxId} that is not older than the wanted one (generation ${known}, wanted ${wanted}), and keeps it. Ask an operator: the database may be an older copy.`,
  )
}
