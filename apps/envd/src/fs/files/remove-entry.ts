/**
 * Removes a path with all that is in it. Names that are not text, folders that change meanwhile, and folders that lie
 * deeper than a path can tell are no obstacle.
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
  /** How many folders have been moved up to it. */
  movedUp: number
  readonly signal: AbortSignal
}

async function remove(at: BytePath, removal: Removal): Promise<void> {
  const isFolder = await unlink(toPath(at)).then(() => false, isFolderOrThrow)
  if (isFolder) await removeFolder(at, removal)
}

/** While others put things in, each turn removes what is there; in the end the system's refusal is the answer. */
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

/** Up to the folder that is to be removed, where the path to it is short again. */
async function moveUp(at: BytePath, removal: Removal): Promise<BytePath> {
  removal.movedUp += 1
  const movedUp = `${removal.root}/.removing-${process.pid}-${removal.movedUp}`
  return rename(toPath(at), toPath(movedUp)).then(
    () => movedUp,
    () => at, // gone, or not to be moved: whatever removing it says is the answer
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

/** Linux refuses to unlink a folder with EISDIR; EPERM is what POSIX asks for. */
function isFolderOrThrow(error: NodeJS.ErrnoException): boolean {
  if (error.code === 'ENOENT') return false
  if (error.code === 'EISDIR' || error.code === 'EPERM') return true
  throw error
}
