import { readdirSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import type { StatsFs } from 'node:fs'
import { join } from 'node:path'
import type { HostSpace } from '../../domain/host/disk-space.ts'
import type { Allowance, Allowances, DiskState } from '../../domain/host/space-division.ts'
import { blockDeviceName } from './block-device.ts'
import { trimmedMark } from './discards.ts'

/**
 * Reads how full the mounted disks and the data file system are, and limits how much each disk may still grow.
 *
 * The limit is `reserved_clusters` of the disk's ext4: blocks that no process may allocate, not even root. The kernel
 * checks the limit at every `write`, before a page becomes dirty. `df` inside the sandbox does not count reserved
 * blocks as available. The limit stays in force when the agent dies.
 *
 * All calls are synchronous and touch only kernel memory: a pass over all disks is atomic for the agent and takes about
 * 50 µs per disk.
 *
 * Threats: sandboxes control the files on a disk. The agent opens none of them, only kernel files and mount points.
 */
export interface MountedDisks {
  readHost(): HostSpace
  readDisks(): DiskState[]
  /** Limits the growth of disks that `readDisks` just returned. Without `allowances` each disk may fill up. */
  limit(disks: readonly DiskState[], allowances: Allowances | undefined): void
}

interface Limit {
  /** Path of `reserved_clusters` in sysfs. */
  readonly file: string
  readonly blockBytes: number
  readonly totalBlocks: number
  /** Blocks that the kernel reserves by default. */
  readonly defaultBlocks: number
  /** Blocks reserved now. */
  readonly blocks: number
}

export function createMountedDisks(parts: {
  readonly dataDir: string
  /** Folder with one mount point per disk, by a path that works in the agent: the mounts are in another namespace. */
  readonly disksDir: string
}): MountedDisks {
  let limits = new Map<string, Limit>()

  const read = (id: string) => readDisk(join(parts.disksDir, id), id)

  /** Returns false if the disk is gone. Another, smaller file system may have its loop device, and refuse the limit. */
  function write(id: string, { file, totalBlocks }: Limit, blocks: number): boolean {
    try {
      writeFileSync(file, String(blocks), { flag: 'r+' })
      return true
    } catch (error) {
      const now = unlessGone(() => read(id))?.limit
      if (now?.file === file && now.totalBlocks === totalBlocks) throw error
      return false
    }
  }

  return {
    readHost() {
      const host = statfsSync(parts.dataDir)
      return {
        totalBytes: host.blocks * host.bsize,
        freeBytes: host.bavail * host.bsize,
        freeInodes: host.ffree,
        hasInodeLimit: hasInodeLimit(host),
      }
    },

    readDisks() {
      const found = listNames(parts.disksDir).flatMap((id) => unlessGone(() => read(id)) ?? [])
      limits = new Map(found.map(({ state, limit }) => [state.id, limit]))
      return found.map(({ state }) => state)
    },

    limit(disks, allowances) {
      const wanted = disks.flatMap(({ id, freeBytes }) => {
        const limit = limits.get(id)
        if (!limit) return []
        const blocks = reservedBlocks(limit, freeBytes, allowances?.get(id) ?? freeBytes)
        return blocks === limit.blocks ? [] : [{ id, limit, blocks }]
      })
      // Tighter limits first, so that the sum of all allowances never exceeds the space.
      const isTighter = ({ limit, blocks }: (typeof wanted)[number]) => blocks > limit.blocks
      for (const group of [wanted.filter(isTighter), wanted.filter((each) => !isTighter(each))]) {
        for (const { id, limit, blocks } of group) {
          if (write(id, limit, blocks)) limits.set(id, { ...limit, blocks })
        }
      }
    },
  }
}

function readDisk(
  mountPoint: string,
  id: string,
): { readonly state: DiskState; readonly limit: Limit } | undefined {
  const device = blockDeviceName(statSync(mountPoint).dev)
  const isMounted = device?.startsWith('loop')
  if (!isMounted) return undefined
  const { blocks, bfree, bsize } = statfsSync(mountPoint)
  const image = statSync(readFileSync(`/sys/block/${device}/loop/backing_file`, 'utf8').trimEnd())
  const settings = `/sys/fs/ext4/${device}`
  const file = join(settings, 'reserved_clusters')
  const limit = {
    file,
    blockBytes: bsize,
    totalBlocks: blocks,
    defaultBlocks: Math.min(Math.floor(image.size / bsize / 50), 4096),
    blocks: readNumber(file),
  }
  const state = {
    id,
    sizeBytes: image.size,
    usedBytes: (blocks - bfree) * bsize,
    freeBytes: bfree * bsize,
    imageBytes: image.blocks * 512,
    isTrimmed: readNumber(join(settings, trimmedMark.file)) === trimmedMark.value,
  }
  return { state, limit }
}

/** Tests for an inode limit. Some file systems create inodes on demand and report 0. */
export function hasInodeLimit({ files }: Pick<StatsFs, 'files'>): boolean {
  return files > 0
}

/** Counts the blocks to reserve. A locked disk reserves all blocks, so that deletions inside make none available. */
function reservedBlocks(limit: Limit, freeBytes: number, allowed: Allowance): number {
  if (allowed === 'locked') return limit.totalBlocks
  return Math.max(limit.defaultBlocks, Math.ceil((freeBytes - allowed) / limit.blockBytes))
}

function readNumber(file: string): number {
  return Number(readFileSync(file, 'utf8'))
}

/** Runs `work`. Returns undefined if the disk is gone: a disk may be unmounted at any moment. */
function unlessGone<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && goneCodes.has(String(error.code))) {
      return undefined
    }
    throw error
  }
}

const goneCodes = new Set(['ENOENT', 'ENODEV', 'ENXIO'])

function listNames(dir: string): string[] {
  return unlessGone(() => readdirSync(dir)) ?? []
}
