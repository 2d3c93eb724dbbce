import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Authority } from '@atoll/contracts/network/rules'
import { syncFolder, writeFileAtomic } from '@atoll/kit/atomic-file'
import { randomHex } from '@atoll/kit/id'
import { z } from 'zod'
import { quarantinedFault } from '../domain/sandboxes/quarantine.ts'
import type { Quarantined } from '../domain/sandboxes/quarantine.ts'
import type { Snapshot, SnapshotPlace, SnapshotStore } from '../domain/sandboxes/snapshot.ts'
import { snapshotValues, upgrades } from './private-values.ts'
import { decodeRecord, encodePrivate, isStale, listNames, readRecord } from './record-file.ts'
import type { RecordKeys, RecordReading } from './record-file.ts'
import { storedMakings } from './records.ts'
import { withTemporarySnapshots } from './temporary-snapshots.ts'
import type { DurableSnapshots } from './temporary-snapshots.ts'

export const StoredSnapshot = z.object({
  ...storedMakings,
  snapshotId: z.string(),
  envVars: z.record(z.string(), z.string()),
  authority: Authority.exactOptional(),
})

/** Name prefix of folders that are being written or removed; snapshot IDs cannot contain it. */
const unfinished = '.'

/** One folder per snapshot: disk image, memory folder, and the record in `snapshot.json`. */
export function createSnapshotStore(dir: string, keys: RecordKeys): SnapshotStore {
  return withTemporarySnapshots(createDurableSnapshots(dir, keys), {
    create: () => newFolder(dir),
    place: placeIn,
    sizeBytes: bytesIn,
  })
}

function createDurableSnapshots(dir: string, keys: RecordKeys): DurableSnapshots {
  const privateValues = snapshotValues(keys)
  const format = { schema: StoredSnapshot, upgrades, privateValues }
  async function read(name: string): Promise<RecordReading<Snapshot>> {
    const reading = await readRecord(join(dir, name, 'snapshot.json'), format)
    if (reading.state !== 'read' || reading.record.snapshotId === name) return reading
    return { state: 'unreadable', reason: 'its record belongs to another snapshot', text: '' }
  }

  async function* readAll() {
    for (const name of await listNames(dir)) {
      if (!name.startsWith(unfinished)) yield { name, reading: await read(name) }
    }
  }

  /** Snapshots are never written again otherwise, but may be removed meanwhile. */
  async function reseal(name: string): Promise<boolean> {
    const path = join(dir, name, 'snapshot.json')
    try {
      const text = await readFile(path, 'utf8')
      const reading = decodeRecord(text, format)
      if (reading.state !== 'read' || !isStale(reading.record, text, privateValues)) return false
      using sealing = keys.beginWrite()
      await writeFileAtomic(path, encodePrivate(reading.record, privateValues, sealing))
      return true
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
      throw error
    }
  }

  async function discard(name: string): Promise<void> {
    // Renamed first: a crash never leaves half a snapshot under its name.
    const doomed = newFolder(dir)
    const isThere = await rename(join(dir, name), doomed).then(
      () => true,
      () => false,
    )
    if (isThere) await rm(doomed, { recursive: true, force: true })
  }

  return {
    async add(snapshot, write) {
      const work = newFolder(dir)
      await mkdir(work, { recursive: true, mode: 0o700 })
      try {
        await write(placeIn(work))
        using sealing = keys.beginWrite()
        const text = encodePrivate(snapshot, privateValues, sealing)
        await writeFile(join(work, 'snapshot.json'), text, { mode: 0o600, flush: true })
        await syncFolder(work)
        await rename(work, join(dir, snapshot.snapshotId))
        await syncFolder(dir)
      } catch (error) {
        await rm(work, { recursive: true, force: true })
        throw error
      }
    },

    async find(snapshotId) {
      const reading = await read(snapshotId)
      if (reading.state === 'unreadable') throw quarantinedFault(`Snapshot ${snapshotId}`)
      return reading.state === 'read' ? reading.record : undefined
    },

    async list() {
      const found: Snapshot[] = []
      for await (const { reading } of readAll()) {
        if (reading.state === 'read') found.push(reading.record)
      }
      return found
    },

    async listQuarantined() {
      const found: Quarantined[] = []
      for await (const { name, reading } of readAll()) {
        if (reading.state === 'read') continue
        const isGone = reading.state === 'absent' && !(await listNames(dir)).includes(name)
        if (isGone) continue
        const reason = reading.state === 'absent' ? 'snapshot.json is missing' : reading.reason
        found.push({ kind: 'snapshot', path: join(dir, name), reason })
      }
      return found
    },

    async reseal() {
      const count = { resealed: 0, unreadable: 0 }
      for await (const { name, reading } of readAll()) {
        if (reading.state === 'unreadable') count.unreadable += 1
        if (reading.state === 'read' && (await reseal(name))) count.resealed += 1
      }
      return count
    },

    place: (snapshotId) => placeIn(join(dir, snapshotId)),

    sizeBytes: (snapshotId) => bytesIn(placeIn(join(dir, snapshotId))),

    remove: discard,

    async sweep() {
      const names = await listNames(dir)
      for (const name of names) if (name.startsWith(unfinished)) await discard(name)
    },
  }
}

/** Returns a new path with the name of an unfinished snapshot. */
function newFolder(dir: string): string {
  return join(dir, `${unfinished}${randomHex(8)}`)
}

async function bytesIn({ disk, memoryDir }: SnapshotPlace): Promise<number> {
  const pages = await readdir(memoryDir).catch(() => [])
  const files = [disk, ...pages.map((name) => join(memoryDir, name))]
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).blocks * 512))
  return sizes.reduce((sum, size) => sum + size, 0)
}

function placeIn(folder: string): SnapshotPlace {
  return { disk: join(folder, 'disk.img'), memoryDir: join(folder, 'memory') }
}
