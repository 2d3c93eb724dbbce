import { chown, mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { User } from '../../domain/access/user.ts'

/** Creates a folder and its missing parents. Existing folders keep their owner. */
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

/** Another process may have created the folder in the meantime. */
function ignoreExisting(error: NodeJS.ErrnoException): false {
  if (error.code !== 'EEXIST') throw error
  return false
}

function throwNotFolder(path: string): never {
  throw new Fault('internal', 'not_a_folder', `'${path}' is not a directory`)
}
