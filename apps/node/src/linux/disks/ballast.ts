import { statfsSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Runner } from '@atoll/kit/run'
import type { Ballast } from '../../domain/host/disk-space.ts'

/**
 * Size of the ballast: a file whose blocks are freed in an emergency. Sandboxes never use the disk reserve, but other
 * programs on the host may fill the disk. Truncating the ballast frees enough space to delete sandboxes and to start
 * the server.
 */
const sizeBytes = 64 * 1024 ** 2

export function createBallast(dataDir: string, runner: Runner): Ballast {
  const path = pathIn(dataDir)
  return {
    bytes: () => bytesOf(path),
    release: () => truncateSync(path),
    async restore() {
      await runner.run('fallocate', ['--length', String(sizeBytes), path])
    },
  }
}

/** Truncates the ballast when the disk has less free space than its size. Call it before the server starts. */
export function releaseBallastIfFull(dataDir: string): void {
  const path = pathIn(dataDir)
  if (bytesOf(path) === 0) return
  const { bavail, bsize } = statfsSync(dataDir)
  if (bavail * bsize < sizeBytes) truncateSync(path)
}

function pathIn(dataDir: string): string {
  return join(dataDir, 'ballast')
}

function bytesOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512
}
