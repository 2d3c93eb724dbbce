import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Fault } from '@atoll/kit/fault'
import { outputOf, run, tryRun } from '@atoll/kit/run'

/** Moves a built tree to its final name, which is its content hash. A layer that exists is complete. */
export async function commitLayer(layersDir: string, built: string): Promise<string> {
  const layerId = `sha256-${await hashTree(built)}`
  const layerDir = join(layersDir, layerId)
  if (await exists(layerDir)) {
    await rm(built, { recursive: true })
    return layerId
  }
  // Sync the content before the rename: the final name must never have partial content.
  await run('sync', ['--file-system', built], { timeoutMs: 300_000 })
  await rename(built, layerDir)
  return layerId
}

/** Hashes a tar archive of the tree: files, owners, modes and xattrs in a fixed order. */
export async function hashTree(dir: string): Promise<string> {
  const tar = spawn(
    'tar',
    [
      ...['--create', '--directory', dir, '--sort=name', '--numeric-owner', '--format=posix'],
      ...['--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime'],
      ...['--xattrs', '--xattrs-include=*', '.'],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const ended = once(tar, 'close')
  const hash = createHash('sha256')
  await pipeline(tar.stdout, hash)
  const [code] = await ended
  if (code !== 0) throw new Error(`tar could not read ${dir} (exit ${code})`)
  return hash.digest('hex')
}

/**
 * Removes the folders of builders that died. The caller must hold the lock of the folder. Programs of a killed builder may
 * still write to its folder: the next sweep removes what they leave.
 */
export async function sweepBuilds(layersDir: string, prefix: string): Promise<void> {
  const names = (await readdir(layersDir)).filter((name) => name.startsWith(prefix))
  if (names.length === 0) return
  const mounts = await readFile('/proc/self/mountinfo', 'utf8')
  for (const name of names) {
    const dir = join(layersDir, name)
    // Deleting through a mount would delete the mounted files.
    if (mounts.includes(` ${dir}/`)) {
      throw new Fault(
        'conflict',
        'mounts_left',
        `Cannot delete ${dir}, because something is mounted below it: unmount it, then try again`,
      )
    }
    const args = ['--recursive', '--force', '--one-file-system', dir]
    const result = await tryRun('rm', args, { timeoutMs: 120_000 })
    if (!result.stderr.includes('Directory not empty')) outputOf('rm', args, result)
  }
}

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
