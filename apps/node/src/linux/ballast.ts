import { statfsSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Runner } from '@atoll/kit/run'
import type { Ballast } from '../domain/disk-space.ts'

/**
 * A file on the data file system whose blocks serve only to be given up. Sandboxes never get the reserve, but other
 * programs of the machine may fill the disk to the last block; what the ballast gives back then suffices to delete
 * sandboxes and to start the server.
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

/** Gives the ballast up when less than its size is free. Call it before a start. */
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
