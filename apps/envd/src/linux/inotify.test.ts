import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { inotifyMask, openInotify, parseEvents } from './inotify.ts'
import { lazyLibc } from './libc.ts'

function event(watch: number, mask: number, name: Buffer): Buffer {
  const head = Buffer.alloc(16)
  head.writeInt32LE(watch)
  head.writeUInt32LE(mask, 4)
  head.writeUInt32LE(7, 8)
  head.writeUInt32LE(name.length, 12)
  return Buffer.concat([head, name])
}

test('parseEvents handles any name bytes and padding, and ignores a partial event', () => {
  const bytes = Buffer.concat([
    event(1, 0x4000_0100, Buffer.from('dir\0\0\0\0\0')),
    event(-1, inotifyMask.overflow, Buffer.alloc(0)),
    event(2, 2, Buffer.from([0xff, 0x41, 0, 0])),
    Buffer.alloc(10),
  ])
  assert.deepEqual(parseEvents(bytes), [
    { watch: 1, mask: 0x4000_0100, cookie: 7, name: 'dir' },
    { watch: -1, mask: inotifyMask.overflow, cookie: 7, name: '' },
    { watch: 2, mask: 2, cookie: 7, name: '\xffA' },
  ])
})

async function setup() {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-inotify-'))
  let notifications = 0
  const inotify = openInotify(lazyLibc()(), () => (notifications += 1))
  return {
    folder,
    inotify,
    notifications: () => notifications,
    async [Symbol.asyncDispose]() {
      inotify.close()
      inotify.close()
      await rm(folder, { recursive: true })
    },
  }
}

test('a flood of inotify events does not lose process exits', async () => {
  await using it = await setup()
  it.inotify.add(it.folder, inotifyMask.create)
  const children = Array.from({ length: 5 }, () =>
    spawn('sh', ['-c', 'seq $$ 1 $(($$ + 4000)) | xargs touch'], { cwd: it.folder }),
  )
  const ends = children.map((child) => once(child, 'exit'))
  const until = performance.now() + 300
  while (performance.now() < until); // keeps the event loop busy while events arrive
  assert.deepEqual(new Set((await Promise.all(ends)).flat()), new Set([0, null]))
  await waitFor('a notification', () => it.notifications() > 0)
})

test('a missing path cannot be watched, and a closed instance returns no events', async () => {
  await using it = await setup()
  assert.equal(it.inotify.add(join(it.folder, 'no'), inotifyMask.create), undefined)
  assert.ok(it.inotify.add(it.folder, inotifyMask.create))
  await run('touch', [join(it.folder, 'a')])
  assert.equal(it.inotify.read()[0]?.name, 'a')
  assert.deepEqual(it.inotify.read(), [])
  it.inotify.close()
  assert.deepEqual(it.inotify.read(), [])
  assert.equal(it.inotify.add(it.folder, inotifyMask.create), undefined)
})
