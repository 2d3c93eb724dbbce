import { link, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** A compression or decompression of memory replaces each file once. */
const maxAttempts = 10

/** Ending of files that are being written. */
const unfinishedEnding = '.next'

/**
 * Gives every file of a folder a second name in a new folder, without copying a byte. The files must be replaced, never
 * changed in place. Files that a compression replaces meanwhile are linked as they are before or after. Returns false,
 * and leaves no folder, if the original has gone.
 */
export async function linkFolder(
  from: string,
  to: string,
  isWanted: (name: string) => boolean = () => true,
): Promise<boolean> {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    try {
      await linkOnce(from, to, isWanted)
      return true
    } catch (error) {
      await rm(to, { recursive: true, force: true })
      if (!isMissing(error)) throw error
      const isGone = await readdir(from).then(() => false, isMissing)
      if (isGone) return false
    }
  }
  throw new Error(`the files of ${from} change all the time`)
}

async function linkOnce(
  from: string,
  to: string,
  isWanted: (name: string) => boolean,
): Promise<void> {
  const entries = await readdir(from, { withFileTypes: true })
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const entry of entries) {
    if (!isWanted(entry.name) || entry.name.endsWith(unfinishedEnding)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (entry.isDirectory()) await linkOnce(source, target, () => true)
    else if (entry.isFile()) await link(source, target)
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
