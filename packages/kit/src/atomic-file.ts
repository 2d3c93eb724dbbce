import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { randomHex } from './id.ts'

/**
 * Replaces a file atomically: readers, and the disk after a crash, have the old content or the new one. Synced to disk
 * on return.
 */
export async function writeFileAtomic(path: string, content: string, mode = 0o600): Promise<void> {
  const temporary = `${path}.${randomHex(4)}.tmp`
  try {
    await withFile(temporary, { flags: 'wx', mode }, async (file) => {
      await file.writeFile(content)
      await file.sync()
    })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}) // Rethrow the original error; cleanup errors are secondary.
    throw error
  }
  await syncFolder(dirname(path))
}

/** Syncs a folder: created, renamed and removed names survive a power failure after this returns. */
export async function syncFolder(path: string): Promise<void> {
  await withFile(path, { flags: 'r' }, (folder) => folder.sync())
}

type OpenFile = Awaited<ReturnType<typeof open>>

async function withFile(
  path: string,
  how: { readonly flags: string; readonly mode?: number },
  use: (file: OpenFile) => Promise<void>,
): Promise<void> {
  const file = await open(path, how.flags, how.mode)
  try {
    await use(file)
  } finally {
    await file.close()
  }
}
