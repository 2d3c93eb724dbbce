import { realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { Launch } from '../domain/process/launch.ts'
import type { User } from '../domain/access/user.ts'

/**
 * Rejects a bad working directory before the process starts, while the caller can still get an error. Synchronous,
 * because under gVisor one thread pool round trip takes longer.
 */
export function checkWorkingDirectory({ cwd, user }: Launch): void {
  const real = resolve(cwd)
  if (!statSync(real).isDirectory()) refuse(cwd, 'is not a directory')
  for (let path = real; ; path = dirname(path)) {
    if (!canEnter(path, user)) refuse(cwd, `is not accessible to user '${user.name}'`)
    if (path === '/') return
  }
}

function resolve(cwd: string): string {
  try {
    return realpathSync.native(cwd)
  } catch (cause) {
    return refuse(cwd, 'does not exist', cause)
  }
}

function canEnter(path: string, user: User): boolean {
  if (user.uid === 0) return true
  const { mode, uid, gid } = statSync(path)
  if (uid === user.uid) return (mode & 0o100) !== 0
  if (user.groups.includes(gid)) return (mode & 0o010) !== 0
  return (mode & 0o001) !== 0
}

function refuse(cwd: string, what: string, cause?: unknown): never {
  throw new Fault('invalid', 'bad_cwd', `The working directory '${cwd}' ${what}`, { cause })
}
