import { open, rename } from 'node:fs/promises'
import { randomHex } from './id.ts'

/** Replaces a file whole: a reader or a crash sees the old content or the new, never a part. */
export async function writeFileAtomic(path: string, content: string, mode = 0o600): Promise<void> {
  const temporary = `${path}.${randomHex(4)}.tmp`
  const file = await open(temporary, 'wx', mode)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}
