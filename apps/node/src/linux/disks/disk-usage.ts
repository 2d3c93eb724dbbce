import { join } from 'node:path'
import type { MountNamespace } from '../mounts/mount-namespace.ts'

export interface DiskUsage {
  readonly usedBytes: bigint
  readonly totalBytes: bigint
}

/** Number of paths that always fits on one command line. */
const batchSize = 1000

/**
 * Measures the disks of sandboxes as `df` inside shows them. One `stat` command in the mount namespace covers all
 * disks. The image size cannot be used: it never shrinks.
 *
 * Threats: the command names only mount points, which Atoll owns. Nothing on the disks is opened.
 */
export function createDiskUsage(namespace: MountNamespace, disksDir: string) {
  return async (sandboxIds: readonly string[]): Promise<ReadonlyMap<string, DiskUsage>> => {
    const usages = new Map<string, DiskUsage>()
    for (let start = 0; start < sandboxIds.length; start += batchSize) {
      const points = sandboxIds.slice(start, start + batchSize).map((id) => join(disksDir, id))
      // Exit code 1: a disk is gone, but `stat` still reported all others.
      const { stdout, stderr, code } = await namespace.tryRun('stat', [
        '-f',
        '-c',
        format,
        '--',
        ...points,
      ])
      if (code !== 0 && code !== 1) throw new Error(`disks could not be measured: ${stderr}`)
      for (const line of stdout.split('\n')) {
        const parsed = parseLine(line)
        if (parsed) usages.set(...parsed)
      }
    }
    return usages
  }
}

/** Format of `stat -f`: type, block size, blocks, free blocks, path. */
const format = '%T %S %b %f %n'

/** Returns undefined for a mount point whose disk is gone: `stat` then reports the file system below it. */
export function parseLine(line: string): [string, DiskUsage] | undefined {
  const [, size, blocks, free, id] =
    /^ext2\/ext3 (\d+) (\d+) (\d+) .*\/([a-z0-9]+)$/.exec(line) ?? []
  if (size === undefined || blocks === undefined || free === undefined || id === undefined) {
    return undefined
  }
  const total = BigInt(blocks) * BigInt(size)
  return [id, { usedBytes: total - BigInt(free) * BigInt(size), totalBytes: total }]
}
