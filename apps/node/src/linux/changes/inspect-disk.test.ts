import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { loopDevicesBelow } from '../mounts/rootfs.ts'
import { createDiskInspector } from './inspect-disk.ts'

const { signal } = new AbortController()
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

async function setup(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-inspect-'))
  t.after(() => rm(dir, { recursive: true }))
  await mkdir(join(dir, 'layer/etc'), { recursive: true })
  await writeFile(join(dir, 'layer/etc/hosts'), 'old\n')
  await mkdir(join(dir, 'mounts'))
  const mountsDir = join(dir, 'mounts')
  return { dir, inspector: createDiskInspector({ namespace: { run, tryRun }, mountsDir }) }
}
