import { link, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { randomHex } from '@atoll/kit/id'
import { linkFolder } from '../link-folder.ts'

/**
 * Second names for the files of a sandbox or snapshot that an upload reads. A resume, a compression or a deletion
 * replaces or removes the first names only, so the upload reads what was there when it began.
 */
export interface LinkedFolders {
  /** Returns undefined if the files have gone. Dispose the result to remove the second names. */
  link(source: {
    readonly disk: string
    readonly memoryDir: string | undefined
  }): Promise<Linked | undefined>
  /** Returns undefined if the file has gone. */
  linkFile(path: string): Promise<LinkedFile | undefined>
}

export interface LinkedFile extends AsyncDisposable {
  readonly file: string
}

export interface Linked extends AsyncDisposable {
  /** Folders by the name of the part. */
  readonly folders: Readonly<Record<string, string>>
}

/** `dir` must be on the file system of the data directory. What an earlier process left in it is removed. */
export async function openLinkedFolders(dir: string): Promise<LinkedFolders> {
  await rm(dir, { recursive: true, force: true })
  await mkdir(dir, { recursive: true, mode: 0o700 })
  return {
    async link({ disk, memoryDir }) {
      const work = join(dir, randomHex(8))
      const remove = () => rm(work, { recursive: true, force: true })
      const folders = {
        disk: join(work, 'disk'),
        ...(memoryDir !== undefined && { memory: join(work, 'memory') }),
      }
      try {
        await mkdir(folders.disk, { recursive: true, mode: 0o700 })
        await link(disk, join(folders.disk, 'disk.img'))
        const isWhole = !folders.memory || (await linkFolder(memoryDir ?? '', folders.memory))
        if (isWhole) return { folders, [Symbol.asyncDispose]: remove }
      } catch (error) {
        if (!isMissing(error)) throw error
      }
      await remove()
      return undefined
    },
    async linkFile(path) {
      const file = join(dir, randomHex(8))
      try {
        await link(path, file)
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
      return { file, [Symbol.asyncDispose]: () => rm(file, { force: true }) }
    },
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
