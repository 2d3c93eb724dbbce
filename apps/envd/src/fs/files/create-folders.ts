import { chown, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { User } from '../../domain/access/user.ts'

/** Makes a folder and those above it that are missing. Only what is made here becomes the owner's. */
export async function createFolders(folder: string, owner: User): Promise<void> {
  const missing: string[] = []
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(ignoreMissing)
    if (found?.isDirectory() === false) throwNotFolder(path)
    if (found) break
    missing.push(path)
  }
  for (const path of missing.toReversed()) {
    const made = await mkdir(path, 0o755).then(() => true, ignoreExisting)
    if (made) await chown(path, owner.uid, owner.gid)
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Somebody else may have made it in the meantime. */
function ignoreExisting(error: NodeJS.ErrnoException): false {
  if (error.code !== 'EEXIST') throw error
  return false
}

function throwNotFolder(path: string): never {
  throw new Fault('internal', 'not_a_folder', `'${path}' is not a directory`)
}
