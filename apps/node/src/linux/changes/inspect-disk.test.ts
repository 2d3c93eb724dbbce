import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { loopDevicesBelow } from '../disks/loop-devices.ts'
import { createDiskInspector } from './inspect-disk.ts'

const { signal } = new AbortController()
/** Less than the time that the program in the test would live. */
const limited = { timeout: 120_000 }
const root = Buffer.from('/')

test('inspects a mounted disk in the namespace', async (t) => {
  const { dir, inspector } = await setup(t)
  const disk = join(dir, 'mounts/disk/c1')
  await mkdir(join(disk, 'upper/etc'), { recursive: true })
  await writeFile(join(disk, 'upper/etc/hosts'), 'new\n')
  const inspected = { cellId: 'c1', cellDir: dir, layers: [join(dir, 'layer')] }
  const { changes, isComplete } = await inspector.list(inspected, { path: root, limit: 10 }, signal)
  assert.deepEqual(
    changes.map(({ path, kind }) => `${path.toString()} ${kind}`),
    ['/etc/hosts modified'],
  )
  assert.equal(isComplete, true)
  const read = (path: string) =>
    inspector.read(inspected, { path: Buffer.from(path), maxBytes: 3 }, signal)
  const content = await read('/etc/hosts')
  assert.deepEqual(
    [content?.before, content?.after].map((side) => [side?.content?.toString(), side?.isTruncated]),
    [
      ['old', true],
      ['new', true],
    ],
  )
  assert.equal(await read('/etc/passwd'), undefined)
})

test('inspects an image that is not mounted, writes nothing to it, and frees it', async (t) => {
  const { dir, inspector } = await setup(t)
  const cellDir = join(dir, 'cell')
  await mkdir(join(dir, 'files/upper'), { recursive: true })
  await mkdir(cellDir)
  await writeFile(join(dir, 'files/upper/new'), 'content')
  const image = join(cellDir, 'disk.img')
  await run('mkfs.ext4', ['-q', '-O', '^has_journal', '-d', join(dir, 'files'), image, '16M'])
  const sum = await run('sha256sum', [image])
  const inspected = { cellId: 'c1', cellDir, image, layers: [join(dir, 'layer')] }
  const list = () => inspector.list(inspected, { path: root, limit: 10 }, signal)
  assert.deepEqual(
    (await list()).changes.map(({ path }) => path.toString()),
    ['/new'],
  )
  assert.deepEqual(await loopDevicesBelow(cellDir), [])
  assert.equal(await run('sha256sum', [image]), sum)

  const aborted = inspector.list(inspected, { path: root, limit: 10 }, AbortSignal.timeout(1))
  await assert.rejects(aborted)
  assert.deepEqual(await loopDevicesBelow(cellDir), [])
  await writeFile(image, 'no file system')
  await assert.rejects(list())
})

test(
  'an inspection that is aborted while it mounts leaves no process behind',
  limited,
  async (t) => {
    const { dir, inspector } = await setup(t)
    const { PATH } = process.env
    t.after(() => (process.env['PATH'] = PATH))
    process.env['PATH'] = `${dir}/bin:${PATH}`
    await mkdir(join(dir, 'bin'))
    const mount = join(dir, 'bin/mount')
    await writeFile(mount, `#!/bin/sh\ntouch ${dir}/begun\nsleep 600\n`, { mode: 0o755 })
    const abort = new AbortController()
    const inspected = { cellId: 'c1', cellDir: dir, image: join(dir, 'disk.img'), layers: [] }
    const aborted = inspector.list(inspected, { path: root, limit: 10 }, abort.signal)
    const refused = assert.rejects(aborted, { name: 'AbortError' })
    const hasBegun = async () => existsSync(join(dir, 'begun'))
    await waitFor('the mount', hasBegun, { timeoutMs: 60_000 })
    assert.equal((await commandLines()).filter((line) => line.includes(mount)).length, 1)
    abort.abort()
    await refused
    assert.deepEqual(
      (await commandLines()).filter((line) => line.includes(mount)),
      [],
    )
  },
)

async function commandLines(): Promise<string[]> {
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  return Promise.all(
    processes.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')),
  )
}

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-inspect-'))
  t.after(() => rm(dir, { recursive: true }))
  await mkdir(join(dir, 'layer/etc'), { recursive: true })
  await writeFile(join(dir, 'layer/etc/hosts'), 'old\n')
  const mountsDir = join(dir, 'mounts')
  return { dir, inspector: createDiskInspector({ namespace: { run, tryRun }, mountsDir }) }
}
