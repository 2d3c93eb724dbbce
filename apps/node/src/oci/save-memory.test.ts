import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import type { SaveOptions } from '../domain/sandboxes/runtime.ts'
import { createSaveMemory } from './gvisor-save-memory.ts'

/** Fails saves with the error that `answer` returns. The saved images are of no known format. */
async function setup(t: TestContext, answer: (attempt: number) => string | undefined) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-save-'))
  t.after(() => rm(dir, { recursive: true }))
  const memoryDir = join(dir, 'memory')
  const calls: string[] = []
  let attempts = 0
  const saveMemory = createSaveMemory(async () => ({
    async save(_cellId, into) {
      calls.push('save')
      await writeFile(join(into, 'checkpoint.img'), '', { flag: 'wx' })
      const problem = answer(++attempts)
      if (problem !== undefined) throw new Fault('internal', 'runtime_failed', problem)
    },
    closeConnections: async () => void calls.push('close connections'),
  }))
  return { calls, save: (options?: SaveOptions) => saveMemory('c1', memoryDir, options) }
}

/** Error output of runsc 20240729. */
const opening = `checkpoint failed: checkpointing container "c1": encoding error: runtime error: invalid memory address or nil pointer dereference:
goroutine 121 [running]:
gvisor.dev/gvisor/pkg/state.safely.func1()
\tgvisor.dev/gvisor/pkg/state/state.go:309 +0x179
panic({0x115dc20?, 0x2050690?})
\truntime/panic.go:770 +0x132
gvisor.dev/gvisor/pkg/tcpip/transport/tcp.(*Endpoint).resetConnectionLocked(0xc000)`

test('an image that cannot be checked is written a second time', async (t) => {
  const { calls, save } = await setup(t, () => undefined)
  await save({ flushFiles: async () => void calls.push('flush files') })
  assert.deepEqual(calls, ['save', 'flush files', 'save', 'flush files'])
})

test('files that cannot be flushed fail the save', async (t) => {
  const { save } = await setup(t, () => undefined)
  const flushFiles = () => Promise.reject(new Error('no space left'))
  await assert.rejects(save({ flushFiles }), { message: 'no space left' })
})

test('gigabytes of memory are written once, after the connections are closed', async (t) => {
  const { calls, save } = await setup(t, () => undefined)
  await save({ memoryBytes: 2 * 1024 ** 3 })
  assert.deepEqual(calls, ['close connections', 'save'])
})

test('a connection that is just being opened is waited for', async (t) => {
  const { calls, save } = await setup(t, (attempt) => (attempt === 1 ? opening : undefined))
  await save()
  assert.equal(calls.length, 3)
})

test('a connection without an answer is closed', async (t) => {
  let isEnded = false
  const { calls, save } = await setup(t, () => (isEnded ? undefined : opening))
  await save({ endHalfOpen: async () => void (isEnded = true) })
  assert.equal(calls.length, 4)
})

test('the fault names a connection that stays half-open, or a deleted file', async (t) => {
  const { save } = await setup(t, () => opening)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const refused = assert.rejects(save(), { reason: 'connection_opens', kind: 'invalid' })
  let isOver = false
  void refused.finally(() => (isOver = true))
  while (!isOver) {
    t.mock.timers.tick(5000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await refused
  t.mock.timers.reset()
  const other = await setup(t, () => 'encoding error: gofer.dentry("tmp/x").beforeSave: deleted')
  await assert.rejects(other.save(), { reason: 'deleted_file_open', message: /"\/tmp\/x"/ })
})
