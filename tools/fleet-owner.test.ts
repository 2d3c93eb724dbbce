import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createOwnedFolder } from './fleet/owner.ts'

const program = join(import.meta.dirname, 'fleet/owner.ts')
/** Makes a folder, prints its path, and runs until its input ends. */
const script = `
const { createOwnedFolder } = await import(process.argv[1])
process.stdout.write(await createOwnedFolder(process.argv[2]))
process.stdin.resume()
`

async function setUp() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-owner-'))
  const prefix = join(dir, 'kept-')
  /** Runs a process that owns a folder. */
  const begin = async () => {
    const args = ['--input-type=module', '--eval', script, program, prefix]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const [path] = await once(child.stdout.setEncoding('utf8'), 'data')
    return { child, path: String(path) }
  }
  return { dir, prefix, begin, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

test('folders whose processes were killed are removed by the next one, others stay', async () => {
  await using world = await setUp()
  const [killed, running] = [await world.begin(), await world.begin()]
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')
  const own = await createOwnedFolder(world.prefix)
  assert.deepEqual(
    [killed.path, running.path, own].map((path) => existsSync(path)),
    [false, true, true],
  )
  await createOwnedFolder(world.prefix)
  assert.equal(existsSync(own), true, 'a process may own several folders')
  const ended = once(running.child, 'exit')
  running.child.stdin.end()
  await ended
})

test('a process with the ID of an ended owner keeps nothing', async () => {
  await using world = await setUp()
  const own = await createOwnedFolder(world.prefix)
  const [pid = '', startTime = ''] = (await readFile(join(own, 'owner'), 'utf8')).split(' ')
  assert.equal(Number(pid), process.pid)
  const earlier = `${world.prefix}earlier`
  await mkdir(earlier)
  await writeFile(join(earlier, 'owner'), `${pid} ${Number(startTime) - 1}`)
  await createOwnedFolder(world.prefix)
  assert.deepEqual([existsSync(earlier), existsSync(own)], [false, true])
})

test('a folder without an owner stays for a day', async () => {
  await using world = await setUp()
  const [young, old] = [`${world.prefix}young`, `${world.prefix}old`]
  for (const path of [young, old]) await mkdir(path)
  const yesterday = new Date(Date.now() - 25 * 60 * 60 * 1000)
  await utimes(old, yesterday, yesterday)
  await createOwnedFolder(world.prefix)
  assert.deepEqual([existsSync(young), existsSync(old)], [true, false])
})
