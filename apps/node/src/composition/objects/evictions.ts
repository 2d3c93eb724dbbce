import { stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import type { Sandboxes } from '../../app/lifecycle/sandboxes.ts'
import { createEvictionPasses } from '../../app/objects/eviction-passes.ts'
import type { CachedFiles, EvictionOutcome } from '../../app/objects/eviction-passes.ts'
import type { FileUses } from '../../app/objects/file-uses.ts'
import type { WarmPools } from '../../app/pools/warm-pools.ts'
import type { NodeConfig } from '../../config.ts'
import { cellDir, memoryDir } from '../../domain/host/installation.ts'
import { isEvicted } from '../../domain/sandboxes/sandbox.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Snapshot } from '../../domain/sandboxes/snapshot.ts'
import { folderBytes } from '../../linux/disks/disk-images.ts'
import type { Host } from '../host.ts'
import type { Sweeping } from '../stored-files.ts'
import type { NodeObjects } from './open-objects.ts'

export interface EvictionParts {
  readonly config: Pick<NodeConfig, 'ATOLL_S3_CACHE_MB'>
  readonly objects: NodeObjects
  readonly host: Host
  readonly sandboxes: Pick<Sandboxes, 'paused' | 'evict'>
  readonly pools: Pick<WarmPools, 'list'>
  readonly uses: FileUses
  readonly sweeping: Pick<Sweeping, 'run'>
  readonly log: Logger
}

export interface Evictions {
  /** Number since the start of the node agent. */
  count(): number
  close(): Promise<void>
}

const intervalMs = { usual: 15_000, whenMoreIsDue: 2_000 }
/** A sandbox that was fetched is about to be resumed. */
const fetchedMs = 10 * 60_000

/** Removes files that the object store has too, beside all other work. A backup holds the removals back. */
export function startEvictions(parts: EvictionParts): Evictions {
  const { sweeping, log } = parts
  const closing = new AbortController()
  const { signal } = closing
  const counter = { evicted: 0 }
  const passes = openPasses(parts, counter)
  let timer = setTimeout(begin, intervalMs.whenMoreIsDue)
  let underway = Promise.resolve()

  async function work(): Promise<void> {
    let isMoreDue = false
    try {
      isMoreDue = await sweeping.run(() => passes.run(signal), signal)
    } catch (err) {
      if (signal.aborted) return
      log.warn({ err, event: 'node.evict' }, 'no files were evicted; the next pass tries again')
    }
    if (signal.aborted) return
    timer = setTimeout(begin, isMoreDue ? intervalMs.whenMoreIsDue : intervalMs.usual)
  }
  function begin(): void {
    underway = work()
  }
  return {
    count: () => counter.evicted,
    async close() {
      clearTimeout(timer)
      closing.abort()
      await underway
    },
  }
}

function openPasses(parts: EvictionParts, counter: { evicted: number }) {
  const { config, host, log } = parts
  const limitMb = config.ATOLL_S3_CACHE_MB
  const reportMissing = createMissingReport(log)
  return createEvictionPasses({
    limitBytes: limitMb === undefined ? undefined : limitMb * 1024 ** 2,
    isDiskLow() {
      const { level } = host.space.report()
      return level === 'scarce' || level === 'full'
    },
    findFiles: async () => [...(await findSandboxes(parts)), ...(await findSnapshots(parts))],
    nowMs: () => performance.now(),
    onOutcome({ name, sizeBytes }: CachedFiles, outcome: EvictionOutcome) {
      if (outcome === 'missing') reportMissing(name)
      if (outcome !== 'evicted') return
      counter.evicted += 1
      log.info({ event: 'node.evict', name, sizeBytes })
    },
    onError: (err, name) =>
      log.warn({ err, event: 'node.evict', name }, 'files could not be evicted, and stay'),
  })
}

/** One line per name: a layer that is missing in the store stays missing. */
function createMissingReport(log: Logger): (name: string) => void {
  const reported = new Set<string>()
  return (name) => {
    if (reported.has(name)) return
    if (reported.size >= 1_000) reported.clear()
    reported.add(name)
    log.warn(
      { event: 'node.evict', name },
      'the object store does not have all of this any more, so the files on the node stay',
    )
  }
}

/** Key of the uses of a fetched sandbox or of a snapshot. */
export function useKey(kind: 'sandboxes' | 'snapshots', id: string): string {
  return `${kind}/${id}`
}

/** Marks the folder of a snapshot as used now, also for later agents. A failure only makes the snapshot look older. */
export async function noteSnapshotUse(host: Pick<Host, 'snapshots'>, id: string): Promise<void> {
  const now = new Date()
  await utimes(dirname(host.snapshots.place(id).disk), now, now).catch(() => {})
}

async function findSandboxes(parts: EvictionParts): Promise<CachedFiles[]> {
  const { objects, host, sandboxes } = parts
  const found: CachedFiles[] = []
  for (const record of sandboxes.paused()) {
    if (isEvicted(record) || !objects.sandboxes.isDurable(record)) continue
    const { cellId, disk, owner } = record
    const folder = cellDir(host.installation, cellId)
    const measured = await ifThere(async () => ({
      sizeBytes:
        (await host.disks.usedBytes(join(folder, disk))) +
        (await folderBytes(memoryDir(host.installation, cellId))),
      usedAtMs: (await stat(join(folder, 'cell.json'))).mtimeMs,
    }))
    if (!measured) continue
    const name = useKey('sandboxes', owner.sandboxId)
    found.push({ name, ...measured, evict: (signal) => evictSandbox(parts, record, signal) })
  }
  return found
}

async function evictSandbox(
  { objects, sandboxes, uses }: EvictionParts,
  record: PausedSandbox,
  signal: AbortSignal,
): Promise<EvictionOutcome> {
  const key = useKey('sandboxes', record.owner.sandboxId)
  if (uses.isUsed(key, fetchedMs)) return 'used'
  // Not in the queue of the sandbox: a resume must not wait for the store.
  if (!(await objects.sandboxes.isStored(record, signal))) return 'missing'
  if (uses.isUsed(key, fetchedMs)) return 'used'
  return (await uses.evict(key, () => sandboxes.evict(record))) ? 'evicted' : 'used'
}

async function findSnapshots(parts: EvictionParts): Promise<CachedFiles[]> {
  const { objects, host } = parts
  const { snapshots } = host
  const found: CachedFiles[] = []
  for (const snapshot of await snapshots.list()) {
    const { snapshotId } = snapshot
    const isStored = objects.marks.has('snapshots', snapshotId)
    if (!isStored || snapshots.isTemporary(snapshotId)) continue
    const measured = await ifThere(async () => ({
      sizeBytes: await snapshots.sizeBytes(snapshotId),
      usedAtMs: (await stat(dirname(snapshots.place(snapshotId).disk))).mtimeMs,
    }))
    if (!measured) continue
    const name = useKey('snapshots', snapshotId)
    found.push({ name, ...measured, evict: (signal) => evictSnapshot(parts, snapshot, signal) })
  }
  return found
}

async function evictSnapshot(
  { objects, host, pools, uses }: EvictionParts,
  snapshot: Snapshot,
  signal: AbortSignal,
): Promise<EvictionOutcome> {
  const { snapshotId } = snapshot
  const isPooled = () => pools.list().some((pool) => pool.snapshotId === snapshotId)
  if (isPooled()) return 'used'
  if (!(await objects.snapshots.isStored(snapshot, signal))) return 'missing'
  if (isPooled()) return 'used'
  const isGone = await uses.evict(useKey('snapshots', snapshotId), async () => {
    // Deleted meanwhile: then nothing must say that the store has it.
    if (!(await host.snapshots.find(snapshotId))) return false
    // The note comes first: without it and without files, this node would not know the snapshot any more.
    await objects.marks.add('evicted-snapshots', snapshotId)
    await host.snapshots.remove(snapshotId)
    return true
  })
  return isGone ? 'evicted' : 'used'
}

/** Returns undefined for files that are removed at this moment. */
async function ifThere<T>(measure: () => Promise<T>): Promise<T | undefined> {
  try {
    return await measure()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
