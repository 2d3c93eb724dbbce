import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { runProgram } from '../sim/run-cli.ts'

const path = '/usr/sbin:/usr/bin:/sbin:/bin'
const unitPath = 'etc/systemd/system/atoll.service'
const settingsPath = 'etc/atoll/atoll.env'

async function setup(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'atoll-service-'))
  t.after(() => rm(root, { recursive: true }))
  const service = (args: readonly string[], env: Record<string, string> = {}) =>
    runProgram(['service', ...args, '--root', root], { PATH: path, ...env })
  return { root, service, read: (file: string) => readFile(join(root, file), 'utf8') }
}

test('the unit starts this clone, restarts it and leaves sandboxes alone', async () => {
  const { stdout } = await runProgram(['service', 'install', '--print'], { PATH: path })
  const clone = join(import.meta.dirname, '../../../..')
  assert.doesNotMatch(stdout, /@/)
  for (const line of [
    `ExecStart=${clone}/bin/atoll up`,
    'Restart=always',
    'KillMode=process',
    'Delegate=yes',
    'EnvironmentFile=-/etc/atoll/atoll.env',
  ]) {
    assert.ok(stdout.includes(`\n${line}\n`), line)
  }
})

test('a Node.js outside the standard folders stays in the search path', async (t) => {
  const { root } = await setup(t)
  execFileSync('ln', ['-s', process.execPath, join(root, 'node')])
  const env = { PATH: `${root}:${path}` }
  const { stdout } = await runProgram(['service', 'install', '--print'], env)
  assert.match(stdout, new RegExp(`\\nEnvironment=PATH=/usr/local/sbin:.*:${root}\\n`))
})

test('the service is installed and removed, and its settings stay', async (t) => {
  const { root, service, read } = await setup(t)
  const secret = 'postgres://me:pa"s$w`o\\rd@localhost/atoll'
  const settings = { ATOLL_LISTEN: '127.0.0.1:4000', ATOLL_DATABASE_URL: secret }
  const installed = await service(['install'], { ...settings, ATOLL_API_KEY: 'e2b_x' })
  assert.deepEqual([installed.code, installed.stderr], [0, ''])
  const link = join(root, 'etc/systemd/system/multi-user.target.wants/atoll.service')
  assert.match(await readlink(link), /atoll\.service$/)
  assert.equal((await stat(join(root, settingsPath))).mode & 0o777, 0o600)
  const script = `set -a; . ${join(root, settingsPath)}; env -0`
  const seen = execFileSync('env', ['-i', 'sh', '-c', script], { encoding: 'utf8' })
  const lines = seen.split('\0').filter((line) => line.startsWith('ATOLL_'))
  assert.deepEqual(lines.toSorted(), [
    `ATOLL_DATABASE_URL=${secret}`,
    'ATOLL_LISTEN=127.0.0.1:4000',
  ])

  const again = await service(['install'], { ATOLL_LISTEN: '127.0.0.1:5000' })
  assert.match(again.stdout, /kept .*atoll\.env: edit it/)
  assert.match(await read(settingsPath), /:4000\n/)

  const removed = await service(['uninstall'])
  assert.deepEqual(
    [removed.code, existsSync(join(root, unitPath)), existsSync(link)],
    [0, false, false],
  )
  assert.match(await read(settingsPath), /:4000\n/)
  assert.match((await service(['uninstall'])).stdout, /^nothing to remove/)
})

const refused = {
  'a setting that the server would refuse': { ATOLL_LISTEN: 'nowhere' },
  'a log on standard output, which the service drops': { ATOLL_LOG: 'stdout' },
  'a value with a line break': { ATOLL_REGISTRIES: 'docker.io,\nghcr.io' },
}

for (const [what, env] of Object.entries(refused)) {
  test(`an install with ${what} is refused and changes nothing`, async (t) => {
    const { root, service } = await setup(t)
    const { code, stderr } = await service(['install'], env)
    assert.equal(code, 1)
    assert.ok(stderr.includes(Object.keys(env).join()), stderr)
    assert.equal(existsSync(join(root, 'etc')), false)
  })
}
