/**
 * Lists folders. Threats: a folder may hold millions of entries, be nested without end, change or vanish meanwhile, and
 * hold names that are no text. So names are read a piece at a time up to a limit, entries are looked at in batches, and
 * what is gone by then is left out.
 */
import { opendir, stat } from 'node:fs/promises'
import { posix } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { Entry, ListOptions } from '../../domain/files/entry.ts'
import { toBytes, toPath, toText } from './byte-path.ts'
import type { BytePath } from './byte-path.ts'
import type { Found } from './describe-entry.ts'

export type Describe = (
  at: BytePath,
  shown: { readonly name: string; readonly path: string },
) => Promise<Found>

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
  await walk(await readNames(root), { at: root, shown: withoutSlash(posix.join(path)) }, depth || 1)
  return entries

  async function walk(names: BytePath[], folder: Folder, levels: number): Promise<void> {
    for (let at = 0; at < names.length; at += batch) {
      signal.throwIfAborted()
      const found = await Promise.all(names.slice(at, at + batch).map((name) => look(folder, name)))
      for (const one of found) {
        if (one === undefined) continue
        entries.push(one.found.entry)
        if (!one.found.isFolder || levels === 1) continue
        const inner = { at: one.at, shown: one.found.entry.path }
        await walk(await readNames(one.at).catch(nothing), inner, levels - 1)
      }
    }
  }

  async function look(folder: Folder, bytes: BytePath) {
    const at = `${folder.at}/${bytes}`
    const name = toText(bytes)
    const shown = { name, path: `${folder.shown === '/' ? '' : folder.shown}/${name}` }
    const found = await describe(at, shown).catch(ignoreUnreachable)
    return found && { at, found }
  }

  async function readNames(folder: BytePath): Promise<BytePath[]> {
    const names: BytePath[] = []
    const reader = await opendir(toPath(folder), readOptions)
    for await (const { name } of reader) {
      names.push(name)
      seen += 1
      if (seen > entryLimit) tooMany(path)
      if (names.length % 1024 === 0) signal.throwIfAborted()
    }
    return names.toSorted((a, b) => (a < b ? -1 : 1))
  }
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

interface Folder {
  readonly at: BytePath
  readonly shown: string
}

/** It vanished, or is no folder any more, or lies too deep for a path. */
function nothing(error: unknown): [] {
  if (error instanceof Error && 'errno' in error) return []
  throw error
}

/** It vanished, or lies too deep for a path. */
function ignoreUnreachable(error: NodeJS.ErrnoException): undefined {
  if (!unreachable.has(error.code ?? '')) throw error
}

const unreachable = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'])

function tooMany(path: string): never {
  const text = `'${path}' holds more than ${entryLimit} entries: list less of it at once`
  throw new Fault('exhausted', 'too_many_entries', text)
}

const readOptions = { encoding: 'latin1', bufferSize: 1024 } as const
const batch = 256

/** An answer of so many is 10 MB, and turning it into JSON holds everybody else up for a third of a second. */
const entryLimit = 50_000
