import {
  readdirSync,
  readFileSync,
  readlinkSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { StatsFs } from 'node:fs'
import { basename, join } from 'node:path'
import type { DiskState, HostSpace } from '../../domain/host/disk-space.ts'

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
  /** Sets the allowed growth in bytes of disks that were just read. Without `allowances` each disk may fill up. */
  limit(disks: readonly DiskState[], allowances: ReadonlyMap<string, number> | undefined): void
}

interface Limit {
  /** Path of `reserved_clusters` in sysfs. */
  readonly file: string
  readonly blockBytes: number
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
    const device = deviceOf(statSync(point).dev)
    if (device === undefined) return undefined
    const { blocks, bfree, bsize } = statfsSync(point)
    const image = statSync(readFileSync(`${device}/loop/backing_file`, 'utf8').trimEnd())
    const file = `/sys/fs/ext4/${basename(device)}/reserved_clusters`
    const known = limits.get(id)
    const limit = {
      file,
      blockBytes: bsize,
      usualBlocks: Math.min(Math.floor(image.size / bsize / 50), 4096),
      blocks: known?.file === file ? known.blocks : Number(readFileSync(file, 'utf8')),
    }
    const state = {
      id,
      sizeBytes: image.size,
      usedBytes: (blocks - bfree) * bsize,
      freeBytes: bfree * bsize,
      imageBytes: image.blocks * 512,
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
        const allowed = allowances?.get(id) ?? freeBytes
        const blocks = Math.max(
          limit.usualBlocks,
          Math.ceil((freeBytes - allowed) / limit.blockBytes),
        )
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

const loopMajor = 7

/** Returns the sysfs path of the loop device, or undefined when nothing is mounted on the mount point. */
function deviceOf(number: number): string | undefined {
  // glibc packs 12 bits of the major number above the low 8 bits of the minor; the other bits follow above.
  const major = (number >> 8) & 0xfff
  const minor = (number & 0xff) | ((number >> 12) & ~0xff)
  if (major !== loopMajor) return undefined
  return `/sys/block/${basename(readlinkSync(`/sys/dev/block/${major}:${minor}`))}`
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
