import { createReadStream } from 'node:fs'
import type { Stats } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../failure.ts'
import { visibleName } from '../output/visible-text.ts'
import type { TarEntry } from './write.ts'

/** Lists a local file or folder with all its content, in a stable order. Symlinks are entries, never followed. */
export async function listTree(root: string, filter = takeAll): Promise<TarEntry[]> {
  const entries: TarEntry[] = []
  const visit = async (path: string): Promise<void> => {
    const isExcluded = path !== '' && filter.excludes(path)
    if (isExcluded && !(filter.hasExceptions && (await lstat(join(root, path))).isDirectory()))
      return
    const entry = await toEntry(root, path)
    if (!isExcluded) entries.push(entry)
    if (entry.kind !== 'directory') return
    const names = await readdir(join(root, path))
    for (const name of names.toSorted()) await visit(path === '' ? name : `${path}/${name}`)
  }
  await visit('')
  return entries
}

export interface TreeFilter {
  /** The path is relative to the root. */
  excludes(path: string): boolean
  /** Whether an excluded folder may contain something that is not excluded. */
  readonly hasExceptions: boolean
}

const takeAll: TreeFilter = { excludes: () => false, hasExceptions: false }

async function toEntry(root: string, path: string): Promise<TarEntry> {
  const place = path === '' ? root : join(root, path)
  const stats = await lstat(place)
  const shared = {
    path,
    mode: stats.mode & 0o777,
    sizeBytes: 0,
    modifiedSeconds: stats.mtimeMs / 1000,
  }
  if (stats.isSymbolicLink()) {
    return { ...shared, kind: 'symlink', linkTarget: await readlink(place) }
  }
  if (stats.isDirectory()) return { ...shared, kind: 'directory' }
  if (!stats.isFile()) throw notCopied(place, stats)
  return {
    ...{ ...shared, kind: 'file', sizeBytes: stats.size },
    // One byte more than expected shows that the file has grown.
    open: () => createReadStream(place, { end: stats.size }),
  }
}

function notCopied(place: string, stats: Stats): UsageError {
  const kind = stats.isSocket() ? 'socket' : stats.isFIFO() ? 'pipe' : 'device'
  return new UsageError(
    `${visibleName(place)} is a ${kind}: only files, folders and symlinks can be copied.`,
  )
}
