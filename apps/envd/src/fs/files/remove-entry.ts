/**
 * Removes a path recursively. Handles names that are not text, folders that change meanwhile, and trees deeper than
 * the path limit.
 */
import { opendir, rename, rmdir, unlink } from 'node:fs/promises'
import { toBytes, toPath } from './byte-path.ts'
import type { BytePath } from './byte-path.ts'

export async function removeEntry(path: string, signal: AbortSignal): Promise<void> {
  const root = toBytes(path.replace(/(?<=.)\/+$/, ''))
  await remove(root, { root, movedUp: 0, signal })
}

interface Removal {
  readonly root: BytePath
  /** Number of folders moved up to the root so far. */
  movedUp: number
  readonly signal: AbortSignal
}

async function remove(at: BytePath, removal: Removal): Promise<void> {
  const isFolder = await unlink(toPath(at)).then(() => false, isFolderOrThrow)
  if (isFolder) await removeFolder(at, removal)
}

/** Retries while other programs add entries, then throws the last error. */
async function removeFolder(found: BytePath, removal: Removal): Promise<void> {
  const isDeep = found.length > removal.root.length + moveUpBeyondBytes
  const at = isDeep ? await moveUp(found, removal) : found
  for (let attempt = 1; ; attempt += 1) {
    await removeChildren(at, removal)
    const done = await rmdir(toPath(at)).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return true
        if (error.code !== 'ENOTEMPTY' || attempt === attemptLimit) throw error
        return false
      },
    )
    if (done) return
  }
}

/** Moves a deep folder directly below the root of the removal, where its path is short. */
async function moveUp(at: BytePath, removal: Removal): Promise<BytePath> {
  removal.movedUp += 1
  const movedUp = `${removal.root}/.removing-${process.pid}-${removal.movedUp}`
  return rename(toPath(at), toPath(movedUp)).then(
    () => movedUp,
    () => at, // vanished or cannot be moved; removing it reports the error
  )
}

const moveUpBeyondBytes = 2048

async function removeChildren(at: BytePath, removal: Removal): Promise<void> {
  const reader = await opendir(toPath(at), readOptions).catch(ignoreMissing)
  if (reader === undefined) return
  let pending: Promise<void>[] = []
  for await (const entry of reader) {
    const inner = `${at}/${entry.name}`
    if (entry.isDirectory()) await removeFolder(inner, removal)
    else pending.push(remove(inner, removal))
    if (pending.length < batchSize) continue
    removal.signal.throwIfAborted()
    await Promise.all(pending)
    pending = []
  }
  await Promise.all(pending)
}

const readOptions = { encoding: 'latin1', bufferSize: 256 } as const
const batchSize = 64
const attemptLimit = 10

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** unlink(2) of a folder fails with EISDIR on Linux and EPERM by POSIX. */
function isFolderOrThrow(error: NodeJS.ErrnoException): boolean {
  if (error.code === 'ENOENT') return false
  if (error.code === 'EISDIR' || error.code === 'EPERM') return true
  throw error
}
