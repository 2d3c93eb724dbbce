/** Removes a path with all that is in it. Names that are not text and folders that change meanwhile are no obstacle. */
import { opendir, rmdir, unlink } from 'node:fs/promises'
import { toBytes, toPath } from './byte-path.ts'
import type { BytePath } from './byte-path.ts'

export async function removeEntry(path: string, signal: AbortSignal): Promise<void> {
  await remove(toBytes(path.replace(/(?<=.)\/+$/, '')), signal)
}

async function remove(at: BytePath, signal: AbortSignal): Promise<void> {
  const isFolder = await unlink(toPath(at)).then(() => false, isFolderOrThrow)
  if (isFolder) await removeFolder(at, signal)
}

/** While others put things in, each turn removes what is there; in the end the system's refusal is the answer. */
async function removeFolder(at: BytePath, signal: AbortSignal): Promise<void> {
  for (let turn = 1; ; turn += 1) {
    await empty(at, signal)
    const done = await rmdir(toPath(at)).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return true
        if (error.code !== 'ENOTEMPTY' || turn === turnLimit) throw error
        return false
      },
    )
    if (done) return
  }
}

async function empty(at: BytePath, signal: AbortSignal): Promise<void> {
  const reader = await opendir(toPath(at), readOptions).catch(absent)
  if (reader === undefined) return
  let pending: Promise<void>[] = []
  for await (const entry of reader) {
    const inner = `${at}/${entry.name}`
    if (entry.isDirectory()) await removeFolder(inner, signal)
    else pending.push(remove(inner, signal))
    if (pending.length < batch) continue
    signal.throwIfAborted()
    await Promise.all(pending)
    pending = []
  }
  await Promise.all(pending)
}

const readOptions = { encoding: 'latin1', bufferSize: 256 } as const
const batch = 64
const turnLimit = 10

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Linux refuses to unlink a folder with EISDIR; EPERM is what POSIX asks for. */
function isFolderOrThrow(error: NodeJS.ErrnoException): boolean {
  if (error.code === 'ENOENT') return false
  if (error.code === 'EISDIR' || error.code === 'EPERM') return true
  throw error
}
