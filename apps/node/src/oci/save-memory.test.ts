import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import type { RunOptions } from '@atoll/kit/run'
import { createGvisor } from './gvisor.ts'

interface Save {
  readonly into: string | undefined
  readonly timeoutMs: number | undefined
}

/** Creates a fake runsc. Checkpoints into the final folder fail with the error that `answer` returns. */
async function setup(t: TestContext, answer: (attempt: number) => string | undefined) {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-save-'))
  t.after(() => rm(dir, { recursive: true }))
  const memoryDir = join(dir, 'memory')
  const saves: Save[] = []
  const gvisor = createGvisor({
    namespace: {
      run: async () => '',
      async tryRun(_command, args, options: RunOptions = {}) {
        const ended = (stderr = '') => ({ code: stderr ? 1 : 0, signal: null, stdout: '', stderr })
        if (!args.includes('checkpoint')) return ended()
        const into = args[args.indexOf('--image-path') + 1]
        if (into !== memoryDir) return ended('there is no room')
        saves.push({ into, timeoutMs: options.timeoutMs })
        await writeFile(join(into, 'checkpoint.img'), '', { flag: 'wx' })
        return ended(answer(saves.length))
      },
    },
    program: 'runsc',
    stateDir: join(dir, 'state'),
    dataDir: dir,
    cgroupParent: 'atoll-test',
    guest: undefined,
    release: async () => 'runsc test',
    memoryFormat: async () => 'runsc test',
  })
  const save = (endHalfOpen?: () => Promise<void>) =>
    gvisor.saveMemory('c1', memoryDir, endHalfOpen)
  return { saves, save }
}

/** Error output of runsc 20240729. */
const opening = `checkpoint failed: checkpointing container "c1": encoding error: runtime error: invalid memory address or nil pointer dereference:
goroutine 121 [running]:
gvisor.dev/gvisor/pkg/state.safely.func1()
\tgvisor.dev/gvisor/pkg/state/state.go:309 +0x179
panic({0x115dc20?, 0x2050690?})
\truntime/panic.go:770 +0x132
gvisor.dev/gvisor/pkg/tcpip/transport/tcp.(*Endpoint).resetConnectionLocked(0xc000)`

test('to save gigabytes of memory takes longer than commands usually may', async (t) => {
  const { saves, save } = await setup(t, () => undefined)
  await save()
  assert.equal(saves.length, 1)
  assert.ok((saves[0]?.timeoutMs ?? 60_000) > 200_000)
})

test('a connection that is just being opened is waited for', async (t) => {
  const { saves, save } = await setup(t, (attempt) => (attempt === 1 ? opening : undefined))
  await save()
  assert.equal(saves.length, 2)
})

test('one that nobody answers is ended', async (t) => {
  let isEnded = false
  const { saves, save } = await setup(t, () => (isEnded ? undefined : opening))
  await save(async () => void (isEnded = true))
  assert.equal(saves.length, 3)
})

test('one that stays so is told by what it is, and so is a deleted file', async (t) => {
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
