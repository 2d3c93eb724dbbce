import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { toInstance } from '../domain/instance.ts'
import { createRecordStore } from './records.ts'

const record = {
  sandboxId: 'i1',
  templateId: 'base',
  cpuCount: 1,
  memoryMb: 256,
  diskSizeMb: 64,
  phase: 'creating',
  slotNumber: 3,
  envd: 'e1',
} as const

async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-records-'))
  return {
    dir,
    store: createRecordStore(toInstance(dir)),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('what was written is read back, and an id is taken once', async () => {
  await using world = await setup()
  const { store } = world
  assert.deepEqual(await store.list(), [])
  assert.equal(await store.create(record), true)
  assert.equal(await store.create(record), false)
  const running = { ...record, phase: 'running', process: { pid: 7, started: 'x:1' } } as const
  await store.update(running)
  assert.deepEqual(await store.list(), [{ sandboxId: 'i1', record: running }])
  await store.remove('i1')
  assert.deepEqual(await store.list(), [])
})

for (const [what, text] of [
  ['torn', '{"sandboxId": "i1"'],
  ['of another shape', '{"sandboxId": "i1", "phase": "sleeping"}'],
  ['empty', ''],
] as const) {
  test(`a record that is ${what} is listed by its folder alone`, async () => {
    await using world = await setup()
    await world.store.create(record)
    await writeFile(join(world.dir, 'sandboxes/i1/sandbox.json'), text)
    assert.deepEqual(await world.store.list(), [{ sandboxId: 'i1', record: undefined }])
  })
}
