import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncFolder } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import { checkOwner } from '../domain/build.ts'
import type { Disks } from '../domain/disks.ts'
import { listNames } from './record-file.ts'

/** Archives that steps of builds take their files from. They can be thrown away: whoever builds sends them again. */
export interface BuildFiles {
  /** Where it is, if it is here. */
  find(ownerId: string, hash: string): Promise<string | undefined>
  /** Takes the place of one that was here before. */
  put(ownerId: string, hash: string, pieces: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes those that no build has asked for lately. */
  sweep(nowMs: number): Promise<void>
}

const keptMs = 24 * 60 * 60 * 1000
const unfinished = '.'
/** Of one owner. */
const mostBytes = 10 * 1024 ** 3
const checkEveryBytes = 64 * 1024 ** 2

export async function openBuildFiles(
  dir: string,
  disks: Pick<Disks, 'holdRoom'>,
): Promise<BuildFiles> {
  // What a dead predecessor was taking in.
  for (const name of await listNames(dir)) {
    if (name.startsWith(unfinished)) await rm(join(dir, name), { force: true })
  }

  /** A fault when the owner keeps too much here, or the disk has no room. What is half here counts. */
  async function checkRoom(ownerId: string): Promise<void> {
    using _room = disks.holdRoom(checkEveryBytes, 'keeping these files')
    const own = (await listNames(dir)).filter((name) =>
      [`${ownerId}-`, `${unfinished}${ownerId}-`].some((prefix) => name.startsWith(prefix)),
    )
    const sizes = own.map((name) => sizeOf(join(dir, name)))
    const kept = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
    if (kept <= mostBytes) return
    const gigabytes = mostBytes / 1024 ** 3
    const message = `Files for builds take more than ${gigabytes} GB: they go a day after their last use`
    throw new Fault('exhausted', 'too_many_files', message)
  }

  async function* counted(ownerId: string, pieces: AsyncIterable<Uint8Array>) {
    let bytes = 0
    let checkedAt = 0
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes - checkedAt > checkEveryBytes) {
        await checkRoom(ownerId)
        checkedAt = bytes
      }
      yield piece
    }
  }

  const pathOf = (ownerId: string, hash: string) => {
    checkOwner(ownerId)
    if (!/^[0-9a-f]{64}$/.test(hash)) {
      throw new Fault('invalid', 'bad_hash', 'A hash has 64 hexadecimal digits')
    }
    return join(dir, `${ownerId}-${hash}`)
  }
  return {
    async find(ownerId, hash) {
      const path = pathOf(ownerId, hash)
      const now = new Date()
      return utimes(path, now, now).then(
        () => path,
        () => undefined,
      )
    },

    async put(ownerId, hash, pieces) {
      const path = pathOf(ownerId, hash)
      await mkdir(dir, { recursive: true, mode: 0o700 })
      await checkRoom(ownerId)
      const work = join(dir, `${unfinished}${ownerId}-${randomHex(8)}`)
      try {
        await using file = await open(work, 'wx', 0o600)
        await pipeline(counted(ownerId, pieces), file.createWriteStream({ flush: true }))
        await checkRoom(ownerId)
        await rename(work, path)
        await syncFolder(dir)
      } catch (error) {
        await rm(work, { force: true })
        throw error
      }
    },

    async sweep(nowMs) {
      for (const name of await listNames(dir)) {
        const path = join(dir, name)
        const { mtimeMs } = await stat(path)
        // An upload takes an hour at most.
        if (nowMs - mtimeMs > keptMs) await rm(path, { force: true })
      }
    },
  }
}

/** Nothing, once it has gone meanwhile. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0
}
