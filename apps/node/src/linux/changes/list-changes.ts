import type { Stats } from 'node:fs'
import type { ChangeKind, EntryType, FileChange } from '../../domain/sandboxes/changes.ts'
import { enter, findBefore } from './changed-directory.ts'
import type { ChangedDirectory } from './changed-directory.ts'
import { isWhiteout, sortedNames, statOf } from './open-below.ts'
import type { NameBudget } from './open-below.ts'

/**
 * Lists what a sandbox changed below its template, in the order of the paths. Threats: the sandbox controls names,
 * depth and number of the files, and may change them meanwhile. Each bound ends the page, which then says where the next one
 * starts, or sets `isComplete` to false.
 */
export interface ListBounds {
  readonly limit: number
  /** Entries to look at. Most of them may be unchanged. */
  readonly maxVisited: number
  /** Names to read, of all directories together: those of every level stay in memory. */
  readonly maxNames: number
  readonly maxDepth: number
  readonly maxPathBytes: number
  /** Bytes of all paths of a page. */
  readonly maxBytes: number
  isTimeUp(): boolean
}

export interface ListRequest {
  /** Names of the entry to list. Empty: the whole disk. */
  readonly path: readonly Buffer[]
  /** Last path of the previous page. */
  readonly after?: readonly Buffer[] | undefined
}

export interface ChangePage {
  readonly changes: readonly FileChange[]
  /** Last path that was looked at, if there may be more. */
  readonly next?: Buffer
  /** False if directories were too large or too deep to list. */
  readonly isComplete: boolean
}

export function listChanges(
  root: ChangedDirectory,
  { path, after }: ListRequest,
  bounds: ListBounds,
): ChangePage {
  const changes: FileChange[] = []
  let isComplete = true
  let visited = 0
  let bytes = 0
  let last: Buffer | undefined
  const budget: NameBudget = { left: bounds.maxNames, isTimeUp: bounds.isTimeUp }
  const isFull = () =>
    changes.length >= bounds.limit ||
    visited >= bounds.maxVisited ||
    bytes >= bounds.maxBytes ||
    // Each page makes progress, however slow the machine is.
    (visited > 0 && bounds.isTimeUp())

  /** Returns false once the page is full. */
  function walk(directory: ChangedDirectory, above: Buffer, from: readonly Buffer[] = []): boolean {
    const { names, isComplete: hasAll } = namesIn(directory, budget)
    // The next page starts in this directory, with a new budget.
    if (!hasAll && visited > 0) return false
    isComplete &&= hasAll
    const [first] = from
    for (const name of names) {
      if (first && Buffer.compare(name, first) < 0) continue
      const rest = first?.equals(name) ? from.slice(1) : undefined
      if (!visit(directory, name, above, rest)) return false
    }
    return true
  }

  /** `from`: present if the previous page had this entry; its names below are where that page ended. */
  function visit(
    directory: ChangedDirectory,
    name: Buffer,
    above: Buffer,
    from: readonly Buffer[] | undefined,
  ): boolean {
    if (from === undefined && isFull()) return false
    const entryPath = Buffer.concat([above, slash, name])
    if (entryPath.length > bounds.maxPathBytes || depthOf(entryPath) > bounds.maxDepth) {
      isComplete = false
      return true
    }
    if (from === undefined) {
      visited += 1
      last = entryPath
      const found = changeOf(directory, name, entryPath)
      changes.push(...found)
      bytes += found.length * entryPath.length
    }
    using below = enter(directory, name)
    return below ? walk(below, entryPath, from) : true
  }

  const isDone = visitPath(root, path, { walk, visit, after })
  return { changes, isComplete, ...(!isDone && last && { next: last }) }
}

const slash = Buffer.from('/')

interface Visitor {
  readonly after: readonly Buffer[] | undefined
  walk(directory: ChangedDirectory, above: Buffer, from?: readonly Buffer[]): boolean
  visit(
    directory: ChangedDirectory,
    name: Buffer,
    above: Buffer,
    from: readonly Buffer[] | undefined,
  ): boolean
}

function visitPath(root: ChangedDirectory, path: readonly Buffer[], visitor: Visitor): boolean {
  const { walk, visit, after } = visitor
  const name = path.at(-1)
  if (!name) return walk(root, Buffer.alloc(0), after)
  using parent = enterAll(root, path.slice(0, -1))
  if (!parent.directory) return true
  const above = Buffer.concat(path.slice(0, -1).flatMap((part) => [slash, part]))
  return visit(parent.directory, name, above, after?.slice(path.length))
}

/** Enters one directory after another. `directory` is undefined if one of them is not on the disk. */
export function enterAll(
  root: ChangedDirectory,
  names: readonly Buffer[],
): Disposable & { readonly directory: ChangedDirectory | undefined } {
  const opened = new DisposableStack()
  let directory: ChangedDirectory | undefined = root
  for (const name of names) {
    directory = enter(directory, name)
    if (!directory) break
    opened.use(directory)
  }
  return { directory, [Symbol.dispose]: () => opened.dispose() }
}

/** Names on the disk; in an opaque directory also those of the layers, which are deleted. */
function namesIn(directory: ChangedDirectory, budget: NameBudget): ReturnType<typeof sortedNames> {
  const upper = sortedNames(directory.upper, budget)
  if (!directory.isOpaque || directory.lowers.length === 0) return upper
  const lists = [upper, ...directory.lowers.map((lower) => sortedNames(lower, budget))]
  const all = new Map(
    lists.flatMap(({ names }) => names).map((name) => [name.toString('latin1'), name]),
  )
  return {
    names: [...all.values()].toSorted(Buffer.compare),
    isComplete: lists.every(({ isComplete }) => isComplete),
  }
}

/** Returns nothing if the entry is as the template has it. */
function changeOf(
  { upper, lowers, isOpaque }: ChangedDirectory,
  name: Buffer,
  path: Buffer,
): FileChange[] {
  const after = statOf(upper, name)
  const before = findBefore(lowers, name)?.stat
  if (after && !isWhiteout(after)) {
    if (!before) return [toChange('added', path, after)]
    const isSameDirectory =
      before.isDirectory() && after.isDirectory() && before.mode === after.mode
    return isSameDirectory ? [] : [toChange('modified', path, after)]
  }
  const isDeleted = before !== undefined && (after !== undefined || isOpaque)
  return isDeleted ? [toChange('deleted', path, before)] : []
}

function toChange(kind: ChangeKind, path: Buffer, stat: Stats): FileChange {
  return {
    path,
    kind,
    type: typeOf(stat),
    sizeBytes: stat.isFile() || stat.isSymbolicLink() ? stat.size : 0,
    mode: stat.mode & 0o7777,
    modifiedAtMs: Math.floor(stat.mtimeMs),
  }
}

export function typeOf(stat: Stats): EntryType {
  if (stat.isFile()) return 'file'
  if (stat.isDirectory()) return 'directory'
  return stat.isSymbolicLink() ? 'symlink' : 'other'
}

function depthOf(path: Buffer): number {
  let depth = 0
  for (const byte of path) if (byte === 0x2f) depth += 1
  return depth
}
