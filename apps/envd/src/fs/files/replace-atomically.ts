import { open, rename, rm, symlink } from 'node:fs/promises'
import { randomName } from '../../linux/kernel-random.ts'

/** Replaces the file atomically, with mode 644. A symlink is replaced, not followed. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await replace(path, async (fresh) => {
    await using file = await open(fresh, 'wx', 0o644)
    await file.chmod(0o644)
    await file.writeFile(text, 'latin1')
  })
}

export async function replaceLink(path: string, target: string): Promise<void> {
  await replace(path, (fresh) => symlink(target, fresh))
}

async function replace(path: string, make: (fresh: string) => Promise<void>): Promise<void> {
  const fresh = `${path}.${randomName()}`
  try {
    await make(fresh)
    await rename(fresh, path)
  } catch (thrown) {
    await rm(fresh, { force: true }).catch(() => {})
    throw thrown
  }
}
