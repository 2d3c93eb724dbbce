import {
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  statfs,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncFolder } from '@atoll/kit/atomic-file'
import { randomHex } from '@atoll/kit/id'
import type { Runner } from '@atoll/kit/run'
import type { Disks } from '../../domain/host/disks.ts'
import { tooFewInodes } from '../../domain/host/disk-space.ts'
import { canShareBlocks } from './block-sharing.ts'
import { awaitUnused } from './loop-devices.ts'
import { hasInodeLimit } from './mounted-disks.ts'

export function createDisks(
  dataDir: string,
  runner: Runner,
  reserveSpace: Disks['reserveSpace'],
): Disks {
  const emptyDir = join(dataDir, 'empty-disks')
  let sharing: Promise<boolean> | undefined
  return {
    async create(image, sizeMb) {
      await copySparse(runner, await ensureEmptyDisk(runner, emptyDir, sizeMb), image)
    },

    copy: (from, to) => copySparse(runner, from, to),
    awaitUnused,
    flush: flushFile,
    usedBytes: async (image) => (await stat(image)).blocks * 512,
    isLinked: async (image) => (await stat(image)).nlink > 1,
    sharesBlocks: () => (sharing ??= canShareBlocks(dataDir)),

    reserveSpace,
  }
}

async function copySparse({ run }: Runner, from: string, to: string): Promise<void> {
  const options = { timeoutMs: copyLimitMs }
  await run('cp', ['--reflink=auto', '--sparse=always', from, to], options)
}

/** Long enough to write gigabytes to a busy disk. */
const copyLimitMs = 240_000

/** Throws a fault if `count` more files would take half or more of the free inodes of the file system. */
export async function checkInodes(dir: string, count: number, purpose: string): Promise<void> {
  const host = await statfs(dir)
  if (!hasInodeLimit(host) || count < host.ffree / 2) return
  throw tooFewInodes({ purpose, neededInodes: count, freeInodes: host.ffree })
}

/** Syncs all files in the folder and the folder itself to disk. */
export async function flushFolder(dir: string): Promise<void> {
  // At once: the file system writes its journal once for all of them.
  const files = await readdir(dir)
  await Promise.all([...files.map((name) => flushFile(join(dir, name))), syncFolder(dir)])
}

/** Returns the disk space used by the files in a folder; 0 when the folder does not exist. */
export async function folderBytes(dir: string): Promise<number> {
  const names = await readdir(dir).catch(() => [])
  const sizes = names.map(async (name) => (await stat(join(dir, name))).blocks * 512)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

async function flushFile(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.sync()
}

/**
 * Formats an empty disk once per size; new disks are sparse copies of this one. The file system has no journal, because
 * sandboxes are frozen while their disk is copied.
 */
async function ensureEmptyDisk({ run }: Runner, dir: string, sizeMb: number): Promise<string> {
  const path = join(dir, `empty-${sizeMb}.img`)
  if (await stat(path).catch(() => undefined)) return path
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${randomHex(4)}.tmp`
  try {
    await writeFile(temporary, '', { mode: 0o600 })
    await truncate(temporary, sizeMb * 1024 * 1024)
    const features = ['-O', '^has_journal', '-E', 'lazy_itable_init=1,nodiscard,root_owner=0:0']
    await run('mkfs.ext4', ['-q', '-F', '-m', '0', ...features, temporary])
    // Sync the content before the rename: the final name must never have partial content.
    await flushFile(temporary)
    await rename(temporary, path)
    await syncFolder(dir)
  } finally {
    await rm(temporary, { force: true })
  }
  return path
}
