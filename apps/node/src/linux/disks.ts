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
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import type { Runner } from '@atoll/kit/run'
import type { Disks } from '../domain/disks.ts'
import { canShareBlocks } from './block-sharing.ts'

/** Left for records and logs, whatever sandboxes want. */
const spareBytes = 256 * 1024 * 1024

export function createDisks(dataDir: string, runner: Runner): Disks {
  const emptyDir = join(dataDir, 'empty-disks')
  let sharing: Promise<boolean> | undefined
  return {
    async create(image, sizeMb) {
      await copySparse(runner, await ensureEmptyDisk(runner, emptyDir, sizeMb), image)
    },

    copy: (from, to) => copySparse(runner, from, to),
    flush: flushFile,
    usedBytes: async (image) => (await stat(image)).blocks * 512,
    sharesBlocks: () => (sharing ??= canShareBlocks(dataDir)),

    async checkRoom(bytes) {
      const { bavail, bsize } = await statfs(dataDir)
      const free = bavail * bsize - spareBytes
      if (free >= bytes) return
      const inMb = (value: number) => Math.max(0, Math.ceil(value / 1024 / 1024))
      throw new Fault(
        'exhausted',
        'no_disk_room',
        `The node's disk has ${inMb(free)} MB to spare, and this takes up to ${inMb(bytes)} MB`,
      )
    },
  }
}

async function copySparse({ run }: Runner, from: string, to: string): Promise<void> {
  const options = { timeoutMs: copyLimitMs }
  await run('cp', ['--reflink=auto', '--sparse=always', from, to], options)
}

/** Gigabytes may have to be written, by a disk that others use too. */
const copyLimitMs = 240_000

/** A fault when the file system of a folder has no room for so many more files, however small they are. */
export async function checkInodes(dir: string, count: number): Promise<void> {
  const { ffree } = await statfs(dir)
  // Some file systems have no such limit, and say 0.
  if (ffree === 0 || count < ffree / 2) return
  throw new Fault('exhausted', 'no_disk_room', `The node has no room for ${count} more files`)
}

/** What is in the folder survives whatever would lose the page cache. */
export async function flushFolder(dir: string): Promise<void> {
  for (const name of await readdir(dir)) await flushFile(join(dir, name))
  await syncFolder(dir)
}

/** What the files in it take on the disk; nothing when there is no such folder. */
export async function folderBytes(dir: string): Promise<number> {
  const names = await readdir(dir).catch(() => [])
  const sizes = names.map(async (name) => (await stat(join(dir, name))).blocks * 512)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

async function flushFile(path: string): Promise<void> {
  await using file = await open(path, 'r')
  await file.sync()
}

/** Formatted once per size; each disk begins as a sparse copy of it. No journal: what writes is frozen before a copy. */
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
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
  return path
}
