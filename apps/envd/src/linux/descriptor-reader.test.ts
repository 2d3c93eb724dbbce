import assert from 'node:assert/strict'
import { constants, openSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { readDescriptor } from './descriptor-reader.ts'

test('process.binding has pipe_wrap, and node:net takes its handle through the private option `handle`', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-descriptor-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'pipe')
  await run('mkfifo', [path])
  let received = ''
  // Opened for writing too, so that the open does not wait for a writer.
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const reader = readDescriptor(fd, (bytes) => (received += bytes.toString()))
  t.after(() => reader.close())
  await writeFile(path, 'some bytes')
  await waitFor('the bytes', () => received === 'some bytes')
  assert.throws(() => readDescriptor(1_000_000, () => {}), /libuv error/)
})
