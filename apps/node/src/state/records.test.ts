import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { toInstallation } from '../domain/host/installation.ts'
import { newKeys } from '../sim/keys.ts'
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
    store: createRecordStore(toInstallation(dir), newKeys()),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  }
}

test('written records are read back, for every kind of cell', async () => {
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

const damage = {
  torn: (text: string) => text.slice(0, -20),
  'of a newer version': (text: string) => text.replace('"version":1', '"version":2'),
  'without a field': (text: string) => unchecked(text, ({ disk: _disk, ...rest }) => rest),
  'with a wrong type': (text: string) => unchecked(text, (rest) => ({ ...rest, memoryMb: '256' })),
  'of an unknown phase': (text: string) =>
    unchecked(text, (rest) => ({ ...rest, phase: 'napping' })),
  'with a null': (text: string) => text.replace('"network":{', '"network":null,"was":{'),
  'changed in one bit': (text: string) => text.replace('disk.img', 'disk.imf'),
  empty: () => '',
} satisfies Record<string, (text: string) => string>

/** Rewrites a record as the first releases wrote it: without version and checksum. */
function unchecked(
  text: string,
  change: (record: Record<string, unknown>) => Record<string, unknown>,
): string {
  const { version: _version, checksum: _checksum, ...rest } = JSON.parse(text)
  return JSON.stringify(change(rest))
}

const paused = {
  ...record,
  phase: 'paused',
  owner: { sandboxId: 'i1', envVars: {}, network: { allowOut: [], denyOut: [] } },
} as const

for (const [what, change] of Object.entries(damage)) {
  test(`a record ${what} is quarantined, and its file stays as it is`, async () => {
    await using world = await setup()
    await world.store.create(paused)
    const path = join(world.dir, 'cells/c1/cell.json')
    const changed = change(await readFile(path, 'utf8'))
    await writeFile(path, changed)
    const [entry, ...others] = await world.store.list()
    assert.deepEqual(others, [])
    assert.equal(entry?.record, undefined)
    assert.equal(entry?.quarantined?.path, join(world.dir, 'cells/c1'))
    assert.match(entry?.quarantined?.reason ?? '', /\w/)
    assert.equal(await readFile(path, 'utf8'), changed)
  })
}

test('a damaged record still shows its sandbox and its slot', async () => {
  await using world = await setup()
  await world.store.create({ ...record, owner: { sandboxId: 'i1', envVars: { sandboxId: 'i2' } } })
  const path = join(world.dir, 'cells/c1/cell.json')
  await writeFile(path, (await readFile(path, 'utf8')).slice(0, -4))
  const [entry] = await world.store.list()
  assert.equal(entry?.quarantined?.sandboxId, 'i1')
  assert.equal(entry?.quarantined?.slotNumber, 3)
})

test('a record of another cell is quarantined', async () => {
  await using world = await setup()
  await world.store.create(record)
  await cp(join(world.dir, 'cells/c1'), join(world.dir, 'cells/c2'), { recursive: true })
  const entries = await world.store.list()
  assert.deepEqual(
    entries.map(({ cellId, quarantined }) => [cellId, quarantined?.reason]),
    [
      ['c1', undefined],
      ['c2', 'its record belongs to another cell'],
    ],
  )
})

test('a folder without a record is quarantined when it has files, and a leftover when it has none', async () => {
  await using world = await setup()
  await world.store.create(record)
  await rm(join(world.dir, 'cells/c1/cell.json'))
  await writeFile(join(world.dir, 'cells/c1/cell.json.next'), '{')
  assert.deepEqual(await world.store.list(), [{ cellId: 'c1' }])
  await writeFile(join(world.dir, 'cells/c1/disk.img'), 'files')
  const [entry] = await world.store.list()
  assert.equal(entry?.quarantined?.reason, 'cell.json is missing')
})

test('a folder that was being removed when the agent died is a leftover, whatever is in it', async () => {
  await using world = await setup()
  await mkdir(join(world.dir, 'cells/.c1-1234'), { recursive: true })
  await writeFile(join(world.dir, 'cells/.c1-1234/disk.img'), 'files')
  const [entry] = await world.store.list()
  assert.deepEqual(entry, { cellId: '.c1-1234' })
  await world.store.remove('.c1-1234')
  assert.deepEqual(await world.store.list(), [])
})

test('a retired folder is no cell any more, and its files are removed later', async () => {
  await using world = await setup()
  await world.store.create(record)
  const removeFiles = await world.store.retire('c1')
  const [entry, ...others] = await world.store.list()
  assert.match(entry?.cellId ?? '', /^\.c1-/)
  assert.deepEqual([entry?.record, entry?.quarantined, others], [undefined, undefined, []])
  await removeFiles()
  assert.deepEqual(await world.store.list(), [])
})
