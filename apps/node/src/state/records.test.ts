import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { toInstance } from '../domain/instance.ts'
import { createRecordStore } from './records.ts'

const record = {
  cellId: 'c1',
  templateId: 'base',
  cpuCount: 1,
  memoryMb: 256,
  diskSizeMb: 64,
  phase: 'making',
  slotNumber: 3,
  runtime: 'gvisor',
  layer: 'l1',
  envd: 'e1',
  initToken: 't',
  disk: 'disk.img',
} as const

async function setup() {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-records-'))
  return {
    dir,
    store: createRecordStore(toInstance(dir)),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('what was written is read back, whatever the cell is', async () => {
  await using world = await setup()
  const { store } = world
  assert.deepEqual(await store.list(), [])
  await store.create(record)
  const running = {
    ...record,
    phase: 'running',
    process: { pid: 7, started: 'x:1' },
    owner: {
      sandboxId: 'i1',
      envVars: { A: 'b' },
      network: { allowOut: ['1.1.1.1'], denyOut: [] },
      ingress: { trafficAccessToken: 'x', maskRequestHost: 'h', httpsPorts: [443] },
    },
  } as const
  await store.update(running)
  assert.deepEqual(await store.list(), [{ cellId: 'c1', record: running }])
  const { process: _process, slotNumber: _slot, ...rest } = running
  const paused = { ...rest, phase: 'paused', memory: 'runsc 1' } as const
  await store.update(paused)
  assert.deepEqual(await store.list(), [{ cellId: 'c1', record: paused }])
  await store.remove('c1')
  assert.deepEqual(await store.list(), [])
})

for (const network of [
  { allowOut: [], denyOut: ['0.0.0.0/0'], allowNames: ['a.b', '*.c.d'] },
  { allowOut: [], denyOut: [], proxy: { address: 'a.b:1' } },
  { allowOut: [], denyOut: [], proxy: { address: 'a.b:1', username: 'me', password: 'secret' } },
  {
    allowOut: [],
    denyOut: [],
    transforms: {
      domains: [{ pattern: '*.a.b', headers: { Authorization: 'secret' } }],
      authority: { certificate: 'c', key: 'k' },
    },
  },
]) {
  test(`names, a proxy and headers are read back: ${JSON.stringify(network)}`, async () => {
    await using world = await setup()
    const owned = { ...record, owner: { sandboxId: 'i1', envVars: {}, network } }
    await world.store.create(owned)
    assert.deepEqual(await world.store.list(), [{ cellId: 'c1', record: owned }])
  })
}

for (const [what, text] of [
  ['torn', '{"cellId": "c1"'],
  ['of another shape', '{"cellId": "c1", "phase": "sleeping"}'],
  ['empty', ''],
] as const) {
  test(`a record that is ${what} is listed by its folder alone`, async () => {
    await using world = await setup()
    await world.store.create(record)
    await writeFile(join(world.dir, 'cells/c1/cell.json'), text)
    assert.deepEqual(await world.store.list(), [{ cellId: 'c1', record: undefined }])
  })
}

test('a record that cannot be read at this moment is not taken for a torn one', async () => {
  await using world = await setup()
  await world.store.create(record)
  await rm(join(world.dir, 'cells/c1/cell.json'))
  await mkdir(join(world.dir, 'cells/c1/cell.json'))
  await assert.rejects(world.store.list(), { code: 'EISDIR' })
})

test('a folder without a record is listed by itself', async () => {
  await using world = await setup()
  await world.store.create(record)
  await rm(join(world.dir, 'cells/c1/cell.json'))
  assert.deepEqual(await world.store.list(), [{ cellId: 'c1', record: undefined }])
})
