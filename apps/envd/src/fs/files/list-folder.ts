/**
 * Lists folders. Threats: a folder may hold millions of entries, be deeply nested, change or vanish during the
 * listing, and contain names that are not text. So names are read in steps up to a limit, entries are read in
 * batches, and entries that vanished are skipped.
 */
import { opendir, stat } from 'node:fs/promises'
import { posix } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { Entry, ListOptions } from '../../domain/files/entry.ts'
import { toBytes, toPath, toText } from './byte-path.ts'
import type { BytePath } from './byte-path.ts'
import type { DescribedEntry } from './describe-entry.ts'

export type Describe = (
  bytePath: BytePath,
  displayed: { readonly name: string; readonly path: string },
) => Promise<DescribedEntry>

export async function listFolder(
  path: string,
  describe: Describe,
  { depth, signal }: ListOptions,
): Promise<Entry[]> {
  if (!(await stat(path)).isDirectory()) {
    throw new Fault('invalid', 'not_a_folder', `'${path}' is not a directory`)
  }
  const entries: Entry[] = []
  let seen = 0
  const root = toBytes(path)
  await walk(
    await readNames(root),
    { bytePath: root, displayed: withoutSlash(posix.join(path)) },
    depth || 1,
  )
  return entries

  async function walk(names: BytePath[], folder: Folder, levels: number): Promise<void> {
    for (let start = 0; start < names.length; start += batchSize) {
      signal.throwIfAborted()
      const children = await Promise.all(
        names.slice(start, start + batchSize).map((name) => describeChild(folder, name)),
      )
      for (const child of children) {
        if (child === undefined) continue
        entries.push(child.found.entry)
        if (!child.found.isFolder || levels === 1) continue
        const inner = { bytePath: child.bytePath, displayed: child.found.entry.path }
        await walk(await readNames(child.bytePath).catch(ignoreUnreadable), inner, levels - 1)
      }
    }
  }

  async function describeChild(folder: Folder, nameBytes: BytePath) {
    const bytePath = `${folder.bytePath}/${nameBytes}`
    const name = toText(nameBytes)
    const displayed = { name, path: `${folder.displayed === '/' ? '' : folder.displayed}/${name}` }
    const found = await describe(bytePath, displayed).catch(ignoreUnreachable)
    return found && { bytePath, found }
  }

  async function readNames(folder: BytePath): Promise<BytePath[]> {
    const names: BytePath[] = []
    const reader = await opendir(toPath(folder), readOptions)
    for await (const { name } of reader) {
      names.push(name)
      seen += 1
      if (seen > entryLimit) throwTooMany(path)
      if (names.length % 1024 === 0) signal.throwIfAborted()
    }
    return names.toSorted((a, b) => (a < b ? -1 : 1))
  }
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

interface Folder {
  readonly bytePath: BytePath
  readonly displayed: string
}

/** The folder vanished, was replaced, or its path is too long. */
function ignoreUnreadable(error: unknown): [] {
  if (error instanceof Error && 'errno' in error) return []
  throw error
}

/** The entry vanished, or its path is too long. */
function ignoreUnreachable(error: NodeJS.ErrnoException): undefined {
  if (!unreachable.has(error.code ?? '')) throw error
}

const unreachable = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'])

function throwTooMany(path: string): never {
  const text = `'${path}' has more than ${entryLimit} entries. List a subfolder, or use a smaller depth.`
  throw new Fault('exhausted', 'too_many_entries', text)
}

const readOptions = { encoding: 'latin1', bufferSize: 1024 } as const
const batchSize = 256

/** A response of this size has 10 MB, and encoding it as JSON blocks the event loop for a third of a second. */
const entryLimit = 50_000
