import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { randomHex } from '@atoll/kit/id'
import { z } from 'zod'
import type { Snapshot, SnapshotPlace, SnapshotStore } from '../domain/snapshot.ts'
import { storedAuthority, storedMakings } from './records.ts'
import { listNames, readStored } from './stored.ts'

const Stored = z.object({
  ...storedMakings,
  snapshotId: z.string(),
  envVars: z.record(z.string(), z.string()),
  authority: storedAuthority.exactOptional(),
})

/** Begins the names of folders that are not whole; no id has such a character. */
const unfinished = '.'

/** One folder each, with the image of a disk, a folder of memory, and what it is in `snapshot.json`. */
export function createSnapshotStore(dir: string): SnapshotStore {
  const names = () => listNames(dir)
  const read = (name: string): Promise<Snapshot | undefined> =>
    readStored(join(dir, name, 'snapshot.json'), Stored)

  async function discard(name: string): Promise<void> {
    // First it is no snapshot any more, then it goes.
    const doomed = join(dir, `${unfinished}${randomHex(8)}`)
    const isThere = await rename(join(dir, name), doomed).then(
      () => true,
      () => false,
    )
    if (isThere) await rm(doomed, { recursive: true, force: true })
  }

  return {
    async add(snapshot, write) {
      const work = join(dir, `${unfinished}${randomHex(8)}`)
      await mkdir(work, { recursive: true, mode: 0o700 })
      try {
        await write(placeIn(work))
        const text = JSON.stringify(snapshot)
        await writeFile(join(work, 'snapshot.json'), text, { mode: 0o600, flush: true })
        await rename(work, join(dir, snapshot.snapshotId))
      } catch (error) {
        await rm(work, { recursive: true, force: true })
        throw error
      }
    },

    find: read,

    async list() {
      const found: Snapshot[] = []
      for (const name of await names()) {
        const snapshot = name.startsWith(unfinished) ? undefined : await read(name)
        if (snapshot) found.push(snapshot)
      }
      return found
    },

    place: (snapshotId) => placeIn(join(dir, snapshotId)),

    async sizeBytes(snapshotId) {
      const { disk, memoryDir } = placeIn(join(dir, snapshotId))
      const pages = await readdir(memoryDir).catch(() => [])
      const files = [disk, ...pages.map((name) => join(memoryDir, name))]
      const sizes = await Promise.all(files.map(async (file) => (await stat(file)).blocks * 512))
      return sizes.reduce((sum, size) => sum + size, 0)
    },

    remove: discard,

    async sweep() {
      for (const name of await names()) {
        if ((await read(name)) === undefined || name.startsWith(unfinished)) await discard(name)
      }
    },
  }
}

function placeIn(folder: string): SnapshotPlace {
  return { disk: join(folder, 'disk.img'), memoryDir: join(folder, 'memory') }
}
