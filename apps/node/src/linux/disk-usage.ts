import { join } from 'node:path'
import type { MountNamespace } from './mount-namespace.ts'

export interface DiskUsage {
  readonly usedBytes: bigint
  readonly totalBytes: bigint
}

/** As many paths as one command line surely holds. */
const batchSize = 1000

/**
 * What is taken on the disks of these sandboxes, as `df` inside shows it: one command asks the file systems of all, since they are
 * mounted where we are not. The size of the image would not do: it never shrinks.
 *
 * Threats: only the mount points are named, which are ours; nothing of what is on the disks is opened.
 */
export function createDiskUsage(namespace: MountNamespace, disksDir: string) {
  return async (sandboxIds: readonly string[]): Promise<ReadonlyMap<string, DiskUsage>> => {
    const usages = new Map<string, DiskUsage>()
    for (let start = 0; start < sandboxIds.length; start += batchSize) {
      const points = sandboxIds.slice(start, start + batchSize).map((id) => join(disksDir, id))
      // One that is gone makes it fail in the end, but not before it has told of the others.
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

/** Type, block size, blocks, free blocks, path. */
const format = '%T %S %b %f %n'

/** Undefined for what is no disk of a sandbox: a mount point whose disk has just gone shows what is below it. */
export function parseLine(line: string): [string, DiskUsage] | undefined {
  const [, size, blocks, free, id] =
    /^ext2\/ext3 (\d+) (\d+) (\d+) .*\/([a-z0-9]+)$/.exec(line) ?? []
  if (size === undefined || blocks === undefined || free === undefined || id === undefined) {
    return undefined
  }
  const total = BigInt(blocks) * BigInt(size)
  return [id, { usedBytes: total - BigInt(free) * BigInt(size), totalBytes: total }]
}
