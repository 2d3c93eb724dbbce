/** Operations on files and folders, with the rights of envd (root). */
import { lstat, realpath, rename, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { Fault } from '@atoll/kit/fault'
import type { Entries } from '../../domain/files/entry.ts'
import type { MetadataStore } from '../../domain/files/metadata-store.ts'
import type { User } from '../../domain/access/user.ts'
import type { AccountNames } from './account-names.ts'
import { toBytes } from './byte-path.ts'
import { describeEntry } from './describe-entry.ts'
import { fileFault } from './file-fault.ts'
import { listFolder } from './list-folder.ts'
import { createFolders } from './create-folders.ts'
import { removeEntry } from './remove-entry.ts'

export function folderEntries(deps: {
  readonly names: () => AccountNames
  readonly metadata: MetadataStore
}): Entries {
  const gate = limitConcurrency(listsAtOnce)
  return {
    describe: (path) => describe(path).catch(rethrow(path)),
    makeFolder: (path, owner) => makeFolder(path, owner).catch(rethrow(path)),
    async move(source, destination, owner) {
      await createFolders(dirname(destination), owner).catch(rethrow(destination))
      await lstat(source).catch(rethrow(source)) // so that later errors concern the destination
      await rename(source, destination).catch(rethrow(destination))
      deps.metadata.handleMove(await resolveParent(source), await resolveParent(destination))
    },
    list: (path, options) =>
      gate(async () => {
        const parts = { ...deps, names: deps.names() }
        return listFolder(path, (at, displayed) => describeEntry(at, displayed, parts), options)
      }).catch(rethrow(path)),
    remove: (path, signal) => removeEntry(path, signal).catch(rethrow(path)),
  }

  async function describe(path: string) {
    const displayed = { name: basename(path) || '/', path }
    const parts = { ...deps, names: deps.names() }
    return (await describeEntry(toBytes(path), displayed, parts)).entry
  }
}

/** Bounds memory: further listings wait. */
const listsAtOnce = 4

async function makeFolder(path: string, owner: User): Promise<boolean> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (found?.isDirectory()) return false
  if (found) throw new Fault('invalid', 'not_a_folder', `'${path}' exists and is not a directory`)
  await createFolders(path, owner)
  if ((await stat(path)).isDirectory()) return true
  throw new Fault('internal', 'not_a_folder', `'${path}' is not a directory`)
}

/** Resolves symlinks in the parent path; the last component need not exist. */
async function resolveParent(path: string): Promise<string> {
  const folder = await realpath(dirname(path)).catch(() => dirname(path))
  return join(folder, basename(path))
}

function rethrow(path: string): (thrown: unknown) => never {
  return (thrown) => {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ELOOP') {
      const text = `'${path}' contains a symlink loop`
      throw new Fault('conflict', 'link_loop', text, { cause: thrown })
    }
    throw fileFault(thrown, path)
  }
}
