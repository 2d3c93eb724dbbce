/** Programs of Debian packages that tests of `deploy` need. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'
import { aptGet } from '@atoll/node/debian/apt'

/** Returns the path of a program, after installing its package if need be. */
export async function installProgram(path: string, packageName: string): Promise<string> {
  if (existsSync(path)) return path
  await aptGet(['update'], () => {}).catch(() => {}) // stale package lists may still work
  await aptGet(['install', '--yes', '--no-install-recommends', packageName], () => {})
  return path
}

/** Returns the path of a program, from an unpacked package if need be: installing it would start a service. */
export async function unpackProgram(path: string, packageName: string): Promise<string> {
  if (existsSync(path)) return path
  const cache = join(import.meta.dirname, '../../node_modules/.cache/debian')
  const folder = join(cache, packageName)
  if (existsSync(join(folder, path))) return join(folder, path)
  const fresh = `${folder}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  await aptGet(['update'], () => {}).catch(() => {})
  await run('apt-get', ['download', packageName], { cwd: fresh, timeoutMs: 300_000 })
  const [archive = ''] = (await readdir(fresh)).filter((name) => name.endsWith('.deb'))
  await run('dpkg-deb', ['--extract', join(fresh, archive), fresh], { timeoutMs: 300_000 })
  await rm(join(fresh, archive))
  await rename(fresh, folder)
  return join(folder, path)
}
