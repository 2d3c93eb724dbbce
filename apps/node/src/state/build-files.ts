import { mkdir, open, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncFolder } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import { checkOwner } from '../domain/builds/build.ts'
import type { Disks } from '../domain/host/disks.ts'
import { listNames } from './record-file.ts'

/** Uploaded archives that build steps copy files from. They may be deleted at any time: clients upload them again. */
export interface BuildFiles {
  /** Returns the path of an archive and marks it as used. Undefined when it is not here. */
  find(ownerId: string, hash: string): Promise<string | undefined>
  /** Whether builds of this node can use the archive. Marks it as used. */
  has(ownerId: string, hash: string): Promise<boolean>
  list(): Promise<BuildFile[]>
  /** Moves a file, which must be on the file system of the archives, to the place of an archive. */
  adopt(ownerId: string, hash: string, path: string): Promise<BuildFile>
  /** Stores an archive and replaces an older one. */
  put(ownerId: string, hash: string, pieces: AsyncIterable<Uint8Array>): Promise<void>
  /** Removes archives that no build has used within the last day. */
  sweep(nowMs: number): Promise<void>
}

export interface BuildFile {
  readonly ownerId: string
  readonly hash: string
  readonly path: string
  /** Changes when another archive replaces this one. */
  readonly inode: number
  readonly usedAtMs: number
}

const keptMs = 24 * 60 * 60 * 1000
const namePattern = /^([a-z0-9-]{1,64})-([0-9a-f]{64})$/
const unfinished = '.'
/** Limit per owner. */
const maxBytes = 10 * 1024 ** 3
const checkEveryBytes = 64 * 1024 ** 2

export async function openBuildFiles(
  dir: string,
  disks: Pick<Disks, 'reserveSpace'>,
): Promise<BuildFiles> {
  // Uploads that a crash interrupted.
  for (const name of await listNames(dir)) {
    if (name.startsWith(unfinished)) await rm(join(dir, name), { force: true })
  }

  const { checkRoom, counted } = limitRoom(dir, disks)
  const pathOf = (ownerId: string, hash: string) => {
    checkOwner(ownerId)
    if (!/^[0-9a-f]{64}$/.test(hash)) {
      throw new Fault(
        'invalid',
        'bad_hash',
        'The hash of build files must have 64 hexadecimal digits',
      )
    }
    return join(dir, `${ownerId}-${hash}`)
  }
  const describe = async (ownerId: string, hash: string): Promise<BuildFile> => {
    const path = pathOf(ownerId, hash)
    const { ino, mtimeMs } = await stat(path)
    return { ownerId, hash, path, inode: ino, usedAtMs: mtimeMs }
  }
  const find = async (ownerId: string, hash: string): Promise<string | undefined> => {
    const path = pathOf(ownerId, hash)
    const now = new Date()
    return utimes(path, now, now).then(
      () => path,
      () => undefined,
    )
  }
  return {
    find,

    has: async (ownerId, hash) => (await find(ownerId, hash)) !== undefined,

    async list() {
      const found: BuildFile[] = []
      for (const name of await listNames(dir)) {
        const [, ownerId, hash] = namePattern.exec(name) ?? []
        if (ownerId === undefined || hash === undefined) continue
        const file = await describe(ownerId, hash).catch(() => undefined)
        if (file) found.push(file)
      }
      return found
    },

    async adopt(ownerId, hash, path) {
      await mkdir(dir, { recursive: true, mode: 0o700 })
      await checkRoom(ownerId)
      const now = new Date()
      await utimes(path, now, now)
      await rename(path, pathOf(ownerId, hash))
      await syncFolder(dir)
      return describe(ownerId, hash)
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
        // Uploads in progress are safe: they take an hour at most.
        if (nowMs - mtimeMs > keptMs) await rm(path, { force: true })
      }
    },
  }
}

function limitRoom(dir: string, disks: Pick<Disks, 'reserveSpace'>) {
  /** Throws a fault when the owner stores too much or the disk is full. Counts uploads in progress. */
  async function checkRoom(ownerId: string): Promise<void> {
    using _room = disks.reserveSpace(checkEveryBytes, 'keeping these files')
    const own = (await listNames(dir)).filter((name) =>
      [`${ownerId}-`, `${unfinished}${ownerId}-`].some((prefix) => name.startsWith(prefix)),
    )
    const sizes = own.map((name) => sizeOf(join(dir, name)))
    const kept = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
    if (kept <= maxBytes) return
    const gigabytes = maxBytes / 1024 ** 3
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

  return { checkRoom, counted }
}

/** Returns 0 when the file is gone. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0
}
