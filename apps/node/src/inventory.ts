import { readdir, readFile, realpath, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { loadNodeConfig } from './config.ts'
import { minimumInodes, reserveFor, spaceLevels } from './domain/host/disk-space.ts'
import { guaranteedBytes } from './domain/host/space-division.ts'
import type { SpaceLevel } from './domain/host/disk-space.ts'
import {
  cellDir,
  snapshotsDir,
  spaceLevelFile,
  toInstallation,
} from './domain/host/installation.ts'
import type { Quarantined } from './domain/sandboxes/quarantine.ts'
import { findQuarantined } from './state/quarantined.ts'
import { noKeys } from './state/private-values.ts'
import { createRecordStore } from './state/records.ts'
import { createSnapshotStore } from './state/snapshots.ts'

/** Content of a data directory besides running sandboxes, for all teams together. */
export interface Inventory {
  /** Pre-warmed sandboxes by template. */
  readonly ready: Readonly<Record<string, number>>
  readonly paused: Kept
  readonly snapshots: Kept
  /** Records that cannot be read. */
  readonly quarantined: readonly Quarantined[]
}

export interface Kept {
  readonly count: number
  readonly diskBytes: number
}

export async function takeInventory(dataDir: string): Promise<Inventory> {
  const installation = toInstallation(await realpath(dataDir))
  const ready: Record<string, number> = {}
  const paused: string[] = []
  for (const { cellId, record } of await createRecordStore(installation, noKeys).list()) {
    if (record?.phase === 'paused' || record?.phase === 'evicted')
      paused.push(cellDir(installation, cellId))
    if (record?.phase !== 'ready') continue
    ready[record.templateId] = (ready[record.templateId] ?? 0) + 1
  }
  const dir = snapshotsDir(installation)
  const snapshots = await createSnapshotStore(dir, noKeys).list()
  const folders = snapshots.map(({ snapshotId }) => join(dir, snapshotId))
  const quarantined = await findQuarantined(dataDir)
  return { ready, paused: await measure(paused), snapshots: await measure(folders), quarantined }
}

/** Space on the data file system. */
export interface Space {
  readonly totalBytes: number
  readonly freeBytes: number
  /** Never given to sandboxes. */
  readonly reserveBytes: number
  readonly freeInodes: number
  /** Level that the server last wrote; without a server, derived from the numbers. */
  readonly level: SpaceLevel
}

/** Reads the space of the data directory. `environment`: environment variables of the server. */
export async function readSpace(environment: Record<string, string | undefined>): Promise<Space> {
  const config = loadNodeConfig(environment)
  const host = await statfs(config.ATOLL_DATA_DIR)
  const totalBytes = host.blocks * host.bsize
  const freeBytes = host.bavail * host.bsize
  const reserve = reserveFor(totalBytes, config.ATOLL_DISK_RESERVE_MB)
  const lacksInodes = host.files > 0 && host.ffree < minimumInodes
  const isUsedUp = freeBytes < guaranteedBytes || lacksInodes
  return {
    totalBytes,
    freeBytes,
    reserveBytes: reserve,
    freeInodes: host.ffree,
    level: isUsedUp ? 'full' : await readLevel(config.ATOLL_DATA_DIR),
  }
}

async function readLevel(dataDir: string): Promise<SpaceLevel> {
  const file = spaceLevelFile(toInstallation(await realpath(dataDir)))
  const text = await readFile(file, 'utf8').catch(() => '')
  return spaceLevels.find((level) => level === text) ?? 'roomy'
}

async function measure(folders: readonly string[]): Promise<Kept> {
  let diskBytes = 0
  // Sequential: there may be more folders than open files allowed.
  for (const folder of folders) diskBytes += await takenBy(folder)
  return { count: folders.length, diskBytes }
}

/**
 * Returns the allocated bytes: images are sparse and take less than their length. Files removed meanwhile count as 0.
 */
async function takenBy(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  const blocks = files.map(async ({ parentPath, name }) => {
    const found = await stat(join(parentPath, name)).catch(() => undefined)
    return found?.blocks ?? 0
  })
  return (await Promise.all(blocks)).reduce((sum, count) => sum + count, 0) * 512
}
