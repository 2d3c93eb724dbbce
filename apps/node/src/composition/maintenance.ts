import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { BlankCells } from '../app/pools/blank-cells.ts'
import type { Prototypes } from '../app/pools/prototypes.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import { memoryDir } from '../domain/host/installation.ts'
import { isEvicted } from '../domain/sandboxes/sandbox.ts'
import type { MemoryFolders } from '../linux/files/memory-folders.ts'
import type { Host } from './host.ts'

interface MaintenanceParts {
  readonly host: Host
  readonly sandboxes: Sandboxes
  readonly pools: WarmPools
  readonly blanks: BlankCells | undefined
  readonly prototypes: Prototypes
  readonly memory: MemoryFolders
  readonly log: Logger
}

/** Interval between liveness checks of sandboxes. Checking one sandbox costs microseconds. */
const deadIntervalMs = 250
/** Interval between checks of stuck frozen sandboxes; each sandbox backs off on its own. */
const thawIntervalMs = 250
/** Memory stays uncompressed for this long, since an early resume reads it faster that way. */
const packAfterMs = 120_000
const packIntervalMs = 15_000
/** Pre-warmed sandboxes take memory that others may need. */
const trimIntervalMs = 15_000
const prototypeIntervalMs = 600_000

/** Starts the background loops that remove or shrink what is no longer needed. */
export function startMaintenance(parts: MaintenanceParts): { close(): Promise<void> } {
  const { sandboxes, pools, blanks, prototypes, log } = parts
  const onError = (event: string, what: string) => (err: unknown) =>
    log.error({ err, event }, `${what}; the next pass tries again`)
  const stops = [
    repeat(
      deadIntervalMs,
      sandboxes.removeDead,
      onError('node.reap', 'a dead sandbox could not be removed'),
    ),
    repeat(
      thawIntervalMs,
      sandboxes.retryThaws,
      onError('node.unfreeze', 'the thaw of frozen sandboxes could not be retried'),
    ),
    repeat(
      prototypeIntervalMs,
      prototypes.trim,
      onError('node.trim', 'an unused prototype could not be removed'),
    ),
    repeat(
      trimIntervalMs,
      pools.trim,
      onError('node.trim', 'a surplus pre-warmed sandbox could not be removed'),
    ),
    repeat(
      trimIntervalMs,
      async () => blanks?.trim(),
      onError('node.trim', 'a surplus blank cell could not be removed'),
    ),
  ]
  const stopPacking = repeat(
    packIntervalMs,
    () => packIdleMemory(parts),
    onError('node.pack', 'the memory of a paused sandbox or snapshot could not be compressed'),
  )
  return {
    async close() {
      await Promise.all(stops.map((stop) => stop()))
      // Not awaited: an interrupted compression loses nothing.
      void stopPacking()
    },
  }
}

async function packIdleMemory({ host, sandboxes, memory }: MaintenanceParts): Promise<void> {
  const { installation, snapshots } = host
  const paused = sandboxes
    .paused()
    .filter((one) => !isEvicted(one))
    .map(({ cellId }) => memoryDir(installation, cellId))
  const kept = (await snapshots.list()).map((one) => snapshots.place(one.snapshotId).memoryDir)
  await memory.packIdle([...paused, ...kept], packAfterMs)
}
