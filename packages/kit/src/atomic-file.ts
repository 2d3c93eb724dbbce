import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { randomHex } from './id.ts'

/** Replaces a file whole: a reader or a crash sees the old content or the new, never a part. On disk when this returns. */
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

/** Names that were created, renamed or removed in a folder survive a power failure once this returns. */
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
