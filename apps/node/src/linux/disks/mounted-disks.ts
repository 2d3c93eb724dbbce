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
 * The limit is `reserved_clusters` of the disk's ext4: blocks that no process gets, root included. The kernel checks it
 * at every `write`, before a page becomes dirty, and `df` inside shows it. It stays in force when the agent dies.
 *
 * All calls are synchronous and touch only kernel memory: a pass over all disks is atomic for the agent and takes about
 * 50 µs per disk.
 *
 * Threats: nothing on a disk is opened, only mount points, which Atoll owns, and kernel files.
 */
export interface MountedDisks {
  readHost(): HostSpace
  readDisks(): DiskState[]
  /** Limits the growth of disks that were just read. Without `allowances` each disk may fill up. */
  limit(disks: readonly DiskState[], allowances: Allowances | undefined): void
}

interface Limit {
  /** Path of `reserved_clusters` in sysfs. */
  readonly file: string
  readonly blockBytes: number
  readonly totalBlocks: number
  /** Blocks that the kernel reserves by default. */
  readonly usualBlocks: number
  /** Blocks reserved now. */
  readonly blocks: number
}

export function createMountedDisks(parts: {
  readonly dataDir: string
  /** Folder with one mount point per disk, as the agent reaches it: the mounts are in another namespace. */
  readonly disksDir: string
}): MountedDisks {
  let limits = new Map<string, Limit>()

  function read(id: string): { readonly state: DiskState; readonly limit: Limit } | undefined {
    const point = join(parts.disksDir, id)
    const device = blockDeviceName(statSync(point).dev)
    const isMounted = device?.startsWith('loop')
    if (!isMounted) return undefined
    const { blocks, bfree, bsize } = statfsSync(point)
    const image = statSync(readFileSync(`/sys/block/${device}/loop/backing_file`, 'utf8').trimEnd())
    const settings = `/sys/fs/ext4/${device}`
    const file = join(settings, 'reserved_clusters')
    const limit = {
      file,
      blockBytes: bsize,
      totalBlocks: blocks,
      usualBlocks: Math.min(Math.floor(image.size / bsize / 50), 4096),
      blocks: numberIn(file),
    }
    const state = {
      id,
      sizeBytes: image.size,
      usedBytes: (blocks - bfree) * bsize,
      freeBytes: bfree * bsize,
      imageBytes: image.blocks * 512,
      isTrimmed: numberIn(join(settings, trimmedMark.file)) === trimmedMark.value,
    }
    return { state, limit }
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
      const found = namesIn(parts.disksDir).flatMap((id) => unlessGone(() => read(id)) ?? [])
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
      // Tighter limits first: the sum of all allowances never exceeds the space.
      const isTighter = ({ limit, blocks }: (typeof wanted)[number]) => blocks > limit.blocks
      for (const group of [wanted.filter(isTighter), wanted.filter((one) => !isTighter(one))]) {
        for (const { id, limit, blocks } of group) {
          const isWritten = unlessGone(() => {
            writeFileSync(limit.file, String(blocks), { flag: 'r+' })
            return true
          })
          if (isWritten) limits.set(id, { ...limit, blocks })
        }
      }
    },
  }
}

/** Tests for an inode limit. Some file systems create inodes on demand and report 0. */
export function hasInodeLimit({ files }: Pick<StatsFs, 'files'>): boolean {
  return files > 0
}

/** Blocks of a locked disk are all reserved, so that deletions inside make none available. */
function reservedBlocks(limit: Limit, freeBytes: number, allowed: Allowance): number {
  if (allowed === 'locked') return limit.totalBlocks
  return Math.max(limit.usualBlocks, Math.ceil((freeBytes - allowed) / limit.blockBytes))
}

function numberIn(file: string): number {
  return Number(readFileSync(file, 'utf8'))
}

/** Returns undefined when the disk is gone: it may be unmounted at any moment. */
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

function namesIn(dir: string): string[] {
  return unlessGone(() => readdirSync(dir)) ?? []
}
