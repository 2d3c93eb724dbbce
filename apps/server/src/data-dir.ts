/**
 * Claims a data directory for one server, from before the first access to the end of the process. The lock is never
 * released earlier: a server that has closed everything may still be writing.
 */
import { existsSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { releaseBallastIfFull } from '@atoll/node/linux/disks/ballast'
import { captureFolder, restoreFolder } from './backup/work-folders.ts'
import { lockDataDir } from './lock.ts'

export async function claimDataDir(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await lockDataDir(dataDir)
    checkRestored(dataDir)
    rmSync(captureFolder(dataDir), { recursive: true, force: true })
    releaseBallastIfFull(dataDir)
    await writePidFile(dataDir)
  } catch (error) {
    throw error instanceof Fault ? error : unusable(dataDir, error)
  }
}

/** A data directory with half of a backup would end the records of the other half. */
function checkRestored(dataDir: string): void {
  if (!existsSync(restoreFolder(dataDir))) return
  const message = `A restore into ${dataDir} was interrupted. Empty the directory, then run \`atoll restore\` again`
  throw new Fault('conflict', 'restore_incomplete', message)
}

export function unusable(dataDir: string, cause: unknown): Fault {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
  const advice =
    code === 'ENOSPC' ? 'Free some space there' : 'Run as root, or set another ATOLL_DATA_DIR'
  const message = `${dataDir} cannot be written to (${code}). ${advice}`
  return new Fault('forbidden', 'data_dir_unusable', message, { cause })
}

/** Writes the PID for `atoll down`. The lock, not this file, shows whether the server runs. */
async function writePidFile(dataDir: string): Promise<void> {
  const path = join(dataDir, 'server.pid')
  await writeFileAtomic(path, `${process.pid}\n`, 0o644)
  process.once('exit', () => {
    try {
      rmSync(path, { force: true })
    } catch {
      // A stale file is harmless: the lock is free.
    }
  })
}
