import type { ChangedFile, FileChange } from './file-changes.ts'

/**
 * Compares two sandboxes of one template by their changes since that template. Returns what `ours` has added, modified
 * or deleted compared with `theirs`, in the order of the paths. Entries with the same type, size, mode and time are
 * equal: a fork keeps the times of its parent's files.
 */
export function compareChanges(
  ours: readonly FileChange[],
  theirs: readonly FileChange[],
): FileChange[] {
  const [left, right] = [toSide(ours), toSide(theirs)]
  const paths = new Set([...left.changes.keys(), ...right.changes.keys()])
  return [...paths].toSorted().flatMap((path): FileChange[] => {
    const [our, their] = [left.changes.get(path), right.changes.get(path)]
    const shown = our ?? their
    if (!shown || (our && their && isSame(our, their))) return []
    const isOurs = isPresent(left, our, their)
    const isTheirs = isPresent(right, their, our)
    if (!isOurs && !isTheirs) return []
    if (isOurs && isTheirs) return [{ ...shown, kind: 'modified' }]
    return isOurs ? [{ ...shown, kind: 'added' }] : [{ ...(their ?? shown), kind: 'deleted' }]
  })

  /** An entry that a side has not changed is as in the template, unless a directory above it was deleted. */
  function isPresent(side: Side, own: FileChange | undefined, other: FileChange | undefined) {
    if (own) return own.kind !== 'deleted'
    if (other?.kind === 'added') return false
    return !ancestorsOf(other?.path ?? '').some((path) => side.deleted.has(path))
  }
}

/** Combines the changes of one file, each since the template. Undefined: neither sandbox has changed it. */
export function compareFile(
  path: string,
  ours: ChangedFile | undefined,
  theirs: ChangedFile | undefined,
): ChangedFile | undefined {
  if (!ours && !theirs) return undefined
  const after = ours ? ours.after : theirs?.before
  const before = theirs ? theirs.after : ours?.before
  return { path, ...(before && { before }), ...(after && { after }) }
}

interface Side {
  readonly changes: ReadonlyMap<string, FileChange>
  readonly deleted: ReadonlySet<string>
}

function toSide(changes: readonly FileChange[]): Side {
  const deleted = changes.filter(({ kind }) => kind === 'deleted').map(({ path }) => path)
  return {
    changes: new Map(changes.map((change) => [change.path, change])),
    deleted: new Set(deleted),
  }
}

function isSame(a: FileChange, b: FileChange): boolean {
  if (a.kind === 'deleted' || b.kind === 'deleted') return a.kind === b.kind
  if (a.type !== b.type || a.mode !== b.mode) return false
  // The time of a directory changes with the names in it, which are compared themselves.
  return a.type === 'directory' || (a.sizeBytes === b.sizeBytes && a.modifiedAt === b.modifiedAt)
}

function ancestorsOf(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(2).map((_, index) => parts.slice(0, index + 2).join('/'))
}
