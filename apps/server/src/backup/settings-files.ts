import { copyFile, lstat, mkdir, readdir, readFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { treatmentOf } from './data-entries.ts'

/** Larger files are not settings. */
const maxUnknownBytes = 1024 * 1024

/** Small files of the data directory that a backup copies as they are. */
export interface SettingsFiles {
  /** Paths below the data directory. */
  readonly paths: readonly string[]
  /** Entries that this release does not know. Small files of them are copied. */
  readonly unknown: readonly UnknownEntry[]
  /** Equal for equal names and contents. */
  readonly fingerprint: string
}

export interface UnknownEntry {
  readonly name: string
  readonly isCopied: boolean
}

/**
 * Finds the files. An unknown file is copied if it is small, since a later release may need it to read the rest; an
 * unknown folder is only listed, since a server may change its files during a copy.
 */
export async function findSettings(dataDir: string): Promise<SettingsFiles> {
  const paths: string[] = []
  const unknown: UnknownEntry[] = []
  for (const name of (await readdir(dataDir)).toSorted()) {
    const treatment = treatmentOf(name)
    if (treatment === 'copy') paths.push(...(await filesBelow(dataDir, name)))
    if (treatment !== undefined) continue
    const entry = await lstat(join(dataDir, name))
    const isCopied = entry.isFile() && entry.size <= maxUnknownBytes
    if (isCopied) paths.push(name)
    unknown.push({ name, isCopied })
  }
  const hash = createHash('sha256')
  for (const path of paths) {
    const content = await readFile(join(dataDir, path))
    hash.update(`${path}\0${content.length}\0`).update(content)
  }
  return { paths, unknown, fingerprint: hash.digest('hex') }
}

export async function copySettings(
  dataDir: string,
  { paths }: SettingsFiles,
  to: string,
): Promise<void> {
  for (const path of paths) {
    const target = join(to, path)
    await mkdir(dirname(target), { recursive: true, mode: 0o700 })
    await copyFile(join(dataDir, path), target)
  }
}

async function filesBelow(dataDir: string, path: string): Promise<string[]> {
  const entry = await lstat(join(dataDir, path))
  if (entry.isFile()) return [path]
  if (!entry.isDirectory()) return []
  const found: string[] = []
  for (const name of (await readdir(join(dataDir, path))).toSorted()) {
    if (treatmentOf(name) === 'leave') continue
    found.push(...(await filesBelow(dataDir, join(path, name))))
  }
  return found
}
