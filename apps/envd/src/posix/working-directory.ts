import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { Launch } from '../domain/launch.ts'
import type { User } from '../domain/user.ts'

/** Tells the caller of a bad working directory before anything is started, when there is still somebody to tell. */
export async function checkWorkingDirectory({ cwd, user }: Launch): Promise<void> {
  const real = await realpath(cwd).catch((cause: unknown) => refuse(cwd, 'does not exist', cause))
  if (!(await stat(real)).isDirectory()) refuse(cwd, 'is not a directory')
  for (let path = real; ; path = dirname(path)) {
    if (!(await mayEnter(path, user))) refuse(cwd, `cannot be entered by user '${user.name}'`)
    if (path === '/') return
  }
}

async function mayEnter(path: string, user: User): Promise<boolean> {
  if (user.uid === 0) return true
  const { mode, uid, gid } = await stat(path)
  if (uid === user.uid) return (mode & 0o100) !== 0
  if (user.groups.includes(gid)) return (mode & 0o010) !== 0
  return (mode & 0o001) !== 0
}

function refuse(cwd: string, what: string, cause?: unknown): never {
  throw new Fault('invalid', 'bad_cwd', `The working directory '${cwd}' ${what}`, { cause })
}
