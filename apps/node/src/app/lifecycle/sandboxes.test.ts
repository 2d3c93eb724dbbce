import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '../../sim/node.ts'

test('a created sandbox is recorded as running with its process, under a cell of its own', async () => {
  const { create, records, sandboxes } = simulateNode()
  const { record, slot } = await create()
  assert.equal(records.get(record.cellId)?.phase, 'running')
  assert.equal(records.get(record.cellId)?.owner?.sandboxId, 'i1')
  assert.equal(slot.sandboxAddress, '10.0.0.2')
  assert.deepEqual(sandboxes.get('i1'), { record, slot })
})

test('a sandbox has its start over others until it runs, at each start', async () => {
  const { create, sandboxes, levelled } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual(levelled, [record.cellId, record.cellId])
})

test('the same id twice is refused, also while the first is being created', async () => {
  const { create, slots } = simulateNode()
  const results = await Promise.allSettled([create(), create()])
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'rejected'],
  )
  await assert.rejects(create(), { reason: 'id_taken' })
  assert.equal(slots.size, 1)
})

for (const [what, overrides] of Object.entries({
  'no such template': { findTemplate: () => undefined },
  'an envd that never answers': { initEnvd: () => Promise.reject(new Error('silent')) },
})) {
  test(`${what} fails the create and leaves nothing`, async () => {
    const { create, records, slots, sandboxes, files } = simulateNode({ overrides })
    await assert.rejects(create())
    assert.deepEqual(
      [records.size, slots.size, sandboxes.running().length, files.size],
      [0, 0, 0, 0],
    )
  })
}

test('a caller who leaves half way leaves nothing', async () => {
  const leaving = new AbortController()
  const overrides = { initEnvd: async () => leaving.abort() }
  const { create, records, slots, alive } = simulateNode({ overrides })
  await assert.rejects(create({}, leaving.signal))
  assert.deepEqual([records.size, slots.size, alive.size], [0, 0, 0])
})

test('a kill waits for the create it races with, and two kills share one removal', async () => {
  const { create, sandboxes, records } = simulateNode()
  const created = create()
  await Promise.all([sandboxes.kill('i1'), sandboxes.kill('i1'), created])
  assert.equal(records.size, 0)
  await sandboxes.kill('i1')
})

test('a sandbox that dies is removed and its end is told with the reason', async () => {
  const { create, sandboxes, alive, seen, slots } = simulateNode({
    overrides: { oomKills: () => 1 },
  })
  await create()
  alive.clear()
  await sandboxes.removeDead()
  assert.deepEqual([sandboxes.running(), slots.size], [[], 0])
  await waitFor('the end to be told', () => seen.at(-1)?.kind === 'ended')
  assert.deepEqual(seen.at(-1), {
    kind: 'ended',
    sandboxId: 'i1',
    reason: 'ran out of memory (limit 256 MB)',
  })
})

for (const bad of [
  { sandboxId: '../etc' },
  { sandboxId: '' },
  { memoryMb: 0 },
  { cpuCount: 0 },
  { diskSizeMb: 1 },
]) {
  test(`${JSON.stringify(bad)} is refused before anything is made`, async () => {
    const { create, slots } = simulateNode()
    await assert.rejects(create(bad), { kind: 'invalid' })
    assert.equal(slots.size, 0)
  })
}

test('a paused sandbox holds neither processes nor a slot, and comes back under its id', async () => {
  const { create, sandboxes, alive, slots, records, introduced, seen } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  assert.deepEqual([alive.size, slots.size], [0, 0])
  assert.deepEqual(
    [records.get(record.cellId)?.phase, records.get(record.cellId)?.memory],
    ['paused', 'runsc 1'],
  )
  assert.equal(sandboxes.paused().length, 1)
  await sandboxes.pause('i1', { keepMemory: true })
  const back = await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual([back.record.phase, back.record.memory], ['running', undefined])
  assert.deepEqual([alive.size, slots.size, sandboxes.paused().length], [1, 1, 0])
  assert.deepEqual(
    introduced.map(({ sandboxId }) => sandboxId),
    ['i1', 'i1'],
  )
  await waitFor('four events', () => seen.length === 4)
  assert.deepEqual(
    seen.map(({ kind }) => kind),
    ['started', 'pausing', 'paused', 'started'],
  )
  assert.equal(
    await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false }),
    back,
  )
})

test('the disk that memory belongs to is copied for the resume, and one of them is left', async () => {
  const { create, sandboxes, files } = simulateNode()
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const folder = `/cells/${record.cellId}`
  assert.deepEqual([...files.keys()].toSorted(), [`${folder}/disk.img`, `${folder}/memory`])
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual([...files.keys()], [`${folder}/disk-2.img`])
})

test('a resume that fails leaves the sandbox paused as it was', async () => {
  let isSilent = false
  const { create, sandboxes, files, records, slots } = simulateNode({
    overrides: {
      initEnvd: () => (isSilent ? Promise.reject(new Error('silent')) : Promise.resolve()),
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const [before, kept] = [[...files.keys()], records.get(record.cellId)]
  isSilent = true
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await assert.rejects(sandboxes.resume(request))
  assert.deepEqual([[...files.keys()], records.get(record.cellId), slots.size], [before, kept, 0])
  isSilent = false
  await sandboxes.resume(request)
})

test('memory that cannot be written leaves the sandbox running', async () => {
  const seenPausing: boolean[] = []
  const { create, sandboxes, frozen, records, files, seen } = simulateNode({
    overrides: {
      runtime: {
        async saveMemory() {
          seenPausing.push(sandboxes.isPausing('i1'))
          throw new Error('no room')
        },
      },
    },
  })
  const { record } = await create()
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), { message: 'no room' })
  assert.deepEqual([seenPausing, sandboxes.isPausing('i1')], [[true], false])
  await waitFor('three events', () => seen.length === 3)
  assert.deepEqual(
    seen.map(({ kind }) => kind),
    ['started', 'pausing', 'started'],
  )
  assert.deepEqual([frozen.size, records.get(record.cellId)?.phase], [0, 'running'])
  assert.deepEqual([...files.keys()], [`/cells/${record.cellId}/disk.img`])
  assert.deepEqual(await sandboxes.pause('i1', { keepMemory: false }), { sizeBytes: 3 })
  assert.equal(records.get(record.cellId)?.memory, undefined)
})

test('a pause that cannot be written down leaves the sandbox running, and not frozen', async () => {
  let isFull = true
  const { create, sandboxes, frozen, files, records } = simulateNode({
    overrides: {
      beforeUpdate({ phase }) {
        if (isFull && phase === 'paused') throw new Error('no room')
      },
    },
  })
  const { record } = await create()
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), { message: 'no room' })
  assert.deepEqual([frozen.size, records.get(record.cellId)?.phase], [0, 'running'])
  assert.deepEqual([...files.keys()], [`/cells/${record.cellId}/disk.img`])
  isFull = false
  await sandboxes.pause('i1', { keepMemory: true })
  assert.equal(sandboxes.paused().length, 1)
})

test('what could not be tidied up after a resume does not undo it', async () => {
  const { create, sandboxes, alive } = simulateNode({
    overrides: {
      tidy: ({ phase }) =>
        phase === 'running' ? Promise.reject(new Error('busy')) : Promise.resolve(),
    },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual([sandboxes.running().length, alive.size], [1, 1])
})

test('half a copy of the disk does not stay after a resume that fails', async () => {
  const { create, sandboxes, files, records, slots } = simulateNode({
    overrides: {
      disks: {
        async copy(_from, to) {
          files.set(to, 'half')
          throw new Error('no room')
        },
      },
    },
  })
  const { record } = await create()
  await sandboxes.pause('i1', { keepMemory: true })
  const before = [...files.keys()]
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await assert.rejects(sandboxes.resume(request), { message: 'no room' })
  assert.deepEqual([[...files.keys()], slots.size], [before, 0])
  assert.equal(records.get(record.cellId)?.phase, 'paused')
})

test('a failed resume tells its first reason, also when clearing up fails', async () => {
  let isSilent = false
  const { create, sandboxes } = simulateNode({
    overrides: {
      initEnvd: () => (isSilent ? Promise.reject(new Error('silent')) : Promise.resolve()),
      tidy: () => (isSilent ? Promise.reject(new Error('busy')) : Promise.resolve()),
    },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  isSilent = true
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await assert.rejects(sandboxes.resume(request), { message: 'silent' })
})

test('a copy that fails tells its first reason, also when the sandbox is gone', async () => {
  const { create, sandboxes } = simulateNode({
    overrides: {
      runtime: {
        saveMemory: () => Promise.reject(new Error('it died')),
        thaw: () => Promise.reject(new Error('in state stopped')),
      },
    },
  })
  await create()
  await assert.rejects(sandboxes.snapshot('i1', 's1'), { message: 'it died' })
})

test('memory of another release of the runtime is not read; a boot from the files is', async () => {
  let format = 'runsc 1'
  const { create, sandboxes } = simulateNode({
    overrides: { runtime: { memoryFormat: async () => format } },
  })
  await create()
  await sandboxes.pause('i1', { keepMemory: true })
  format = 'runsc 2'
  const request = { sandboxId: 'i1', accessToken: undefined }
  await assert.rejects(sandboxes.resume({ ...request, boot: false }), {
    reason: 'memory_unreadable',
  })
  await sandboxes.resume({ ...request, boot: true })
})

test('memory is called after the release that runs the sandbox, not after the one that is there now', async () => {
  let release = 'runsc 1'
  const { create, sandboxes, snapshots } = simulateNode({
    overrides: { runtime: { release: async () => release, memoryFormat: async () => release } },
  })
  await create()
  release = 'runsc 2'
  await sandboxes.snapshot('i1', 's1')
  assert.equal((await snapshots.find('s1'))?.memory, 'runsc 1')
  await assert.rejects(create({ sandboxId: 'i2', snapshotId: 's1' }), {
    reason: 'memory_unreadable',
  })
  await sandboxes.pause('i1', { keepMemory: true })
  const before = sandboxes.paused()
  const request = { sandboxId: 'i1', accessToken: undefined }
  await assert.rejects(sandboxes.resume({ ...request, boot: false }), {
    message: /written by runsc 1, and this node has runsc 2/,
  })
  assert.deepEqual(sandboxes.paused(), before)
  await sandboxes.resume({ ...request, boot: true })
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ ...request, boot: false })
})

test('what was made under another runtime is not started by this one', async () => {
  const { create, sandboxes, snapshots } = simulateNode()
  await create()
  await sandboxes.snapshot('i1', 's1')
  const snapshot = await snapshots.find('s1')
  assert.ok(snapshot)
  await snapshots.add({ ...snapshot, snapshotId: 's2', runtime: 'runc' }, async () => {})
  await assert.rejects(create({ sandboxId: 'i2', snapshotId: 's2' }), { reason: 'other_runtime' })
})

test('a pause says what it takes, also when it was paused before, and never fails for that', async () => {
  const { create, sandboxes } = simulateNode()
  await create()
  assert.deepEqual(await sandboxes.pause('i1', { keepMemory: true }), { sizeBytes: 5 })
  assert.deepEqual(await sandboxes.pause('i1', { keepMemory: true }), { sizeBytes: 5 })
  const blind = simulateNode({
    overrides: { keptBytes: () => Promise.reject(new Error('no such file')) },
  })
  await blind.create()
  assert.deepEqual(await blind.sandboxes.pause('i1', { keepMemory: true }), { sizeBytes: 0 })
})

test('a runtime that keeps no memory refuses to, and keeps files', async () => {
  const { create, sandboxes } = simulateNode({ memoryFormat: '' })
  await create()
  await assert.rejects(sandboxes.pause('i1', { keepMemory: true }), { reason: 'memory_not_kept' })
  await sandboxes.pause('i1', { keepMemory: false })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.deepEqual(await sandboxes.snapshot('i1', 's1'), { keepsMemory: false, sizeBytes: 7 })
})

test('copies of a snapshot run beside the original, which is restored', async () => {
  const { create, sandboxes, frozen, files } = simulateNode()
  await create()
  assert.deepEqual(await sandboxes.snapshot('i1', 's1'), { keepsMemory: true, sizeBytes: 7 })
  assert.equal(frozen.size, 0)
  await assert.rejects(sandboxes.snapshot('i1', 's1'), { reason: 'id_taken' })
  await Promise.all(['i2', 'i3'].map((sandboxId) => create({ sandboxId, snapshotId: 's1' })))
  assert.deepEqual(
    sandboxes.running().map(({ record }) => record.owner.sandboxId),
    ['i1', 'i2', 'i3'],
  )
  assert.equal([...files.keys()].filter((path) => path.endsWith('disk.img')).length, 3)
  await assert.rejects(create({ sandboxId: 'i4', snapshotId: 'none' }), { kind: 'not_found' })
})

test('kill, pause and resume of one sandbox take turns', async () => {
  const { create, sandboxes, records, slots, alive } = simulateNode()
  await create()
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  await Promise.allSettled([
    sandboxes.pause('i1', { keepMemory: true }),
    sandboxes.resume(request),
    sandboxes.pause('i1', { keepMemory: true }),
    sandboxes.kill('i1'),
    sandboxes.resume(request),
  ])
  assert.deepEqual(
    [records.size, slots.size, alive.size, sandboxes.get('i1')],
    [0, 0, 0, undefined],
  )
})

test('rules are in force before what was saved goes on, in a resume and in a copy', async () => {
  const { sandboxes, rules, create } = simulateNode()
  const network = { allowOut: [], denyOut: ['9.9.9.9'] }
  await create({ network })
  await sandboxes.snapshot('i1', 's1')
  await create({ sandboxId: 'i2', snapshotId: 's1', network })
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  for (const slot of [1, 2]) {
    const [first, second] = rules.filter((line) => line.startsWith(`${slot} `))
    assert.deepEqual([first, second], [`${slot} 9.9.9.9`, `${slot} is restored`])
  }
})

test('rules are in force before the sandbox is told who it is, and can be replaced', async () => {
  const { sandboxes, rules, introduced, create } = simulateNode()
  await create()
  await sandboxes.setNetwork('i1', { allowOut: [], denyOut: ['0.0.0.0/0'] })
  assert.deepEqual([rules, introduced.length], [['0 0.0.0.0/0'], 1])
  await sandboxes.pause('i1', { keepMemory: true })
  await sandboxes.resume({ sandboxId: 'i1', accessToken: undefined, boot: false })
  assert.ok(rules.includes('1 0.0.0.0/0'))
  await assert.rejects(sandboxes.setNetwork('i9', { allowOut: [], denyOut: [] }), {
    kind: 'not_found',
  })
})

test('to be roused is to stand still for a moment', async () => {
  const stood: string[] = []
  const { create, sandboxes, frozen, records } = simulateNode({
    overrides: { runtime: { freeze: async (cellId) => void stood.push(cellId) } },
  })
  const { record } = await create()
  await sandboxes.freezeAndThaw('i1')
  assert.deepEqual([stood, frozen.size], [[record.cellId], 0])
  assert.equal(records.get(record.cellId)?.phase, 'running')
  await sandboxes.freezeAndThaw('i2')
})

test('one that could not stand still goes on all the same', async () => {
  const { create, sandboxes, records } = simulateNode({
    overrides: { runtime: { freeze: () => Promise.reject(new Error('no')) } },
  })
  const { record } = await create()
  await assert.rejects(sandboxes.freezeAndThaw('i1'), /no/)
  assert.equal(records.get(record.cellId)?.phase, 'running')
})

test('who is not well is ended with the reason, and who is is restored', async () => {
  const { create, sandboxes, seen } = simulateNode({ overrides: { oomKills: () => 1 } })
  await create()
  assert.equal(await sandboxes.killUnless(async () => true, 'i1'), true)
  assert.equal(sandboxes.running().length, 1)
  assert.equal(await sandboxes.killUnless(async () => false, 'i1'), false)
  assert.equal(sandboxes.running().length, 0)
  const reason = 'ran out of memory (limit 256 MB)'
  await waitFor('the end to be told', () => seen.at(-1)?.kind === 'ended')
  assert.deepEqual(seen.at(-1), { kind: 'ended', sandboxId: 'i1', reason })
  assert.equal(await sandboxes.killUnless(async () => true, 'i1'), false)
})

const setting = {
  allowOut: [],
  denyOut: ['9.9.9.9'],
  transforms: { domains: [{ pattern: 'a.b', headers: { a: 'b' } }] },
}

test('an authority is trusted before the rules that need it are in force, and stays', async () => {
  const { create, sandboxes, rules } = simulateNode()
  const { slot } = await create()
  rules.length = 0
  await sandboxes.setNetwork('i1', setting)
  await sandboxes.setNetwork('i1', setting)
  assert.deepEqual(rules, [
    `${slot.number} trusts authority 1`,
    `${slot.number} 9.9.9.9`,
    `${slot.number} 9.9.9.9`,
  ])
  await sandboxes.pause('i1', { keepMemory: true })
  const request = { sandboxId: 'i1', accessToken: undefined, boot: false }
  const { record } = await sandboxes.resume({ ...request, network: setting })
  assert.equal(record.owner.network?.transforms?.authority?.certificate, 'authority 1')
})

test('rules that were taken away come back with the same authority, and a copy has it', async () => {
  const { create, sandboxes, rules } = simulateNode()
  const { slot } = await create({ network: setting })
  await sandboxes.setNetwork('i1', { allowOut: [], denyOut: [] })
  rules.length = 0
  await sandboxes.setNetwork('i1', setting)
  assert.equal(rules[0], `${slot.number} trusts authority 1`)
  await sandboxes.snapshot('i1', 's1')
  const { record } = await create({ sandboxId: 'i2', snapshotId: 's1', network: setting })
  assert.equal(record.owner.network?.transforms?.authority?.certificate, 'authority 1')
})

test('an authority that cannot be trusted leaves the old rules in force', async () => {
  const { create, sandboxes, rules } = simulateNode({
    overrides: { trust: () => Promise.reject(new Error('mute')) },
  })
  await create()
  rules.length = 0
  await assert.rejects(sandboxes.setNetwork('i1', setting), /mute/)
  assert.deepEqual([rules, sandboxes.running()[0]?.record.owner.network], [[], undefined])
})

test('envd is told of an authority, another in each sandbox, and one told ahead cannot be', async () => {
  const bundles: (string | undefined)[] = []
  const { create, sandboxes, records } = simulateNode({
    overrides: { initEnvd: async (_slot, _token, { caBundle }) => void bundles.push(caBundle) },
  })
  const { record } = await create({ network: setting })
  await create({ sandboxId: 'i2', network: setting })
  assert.deepEqual(bundles, ['authority 1', 'authority 2'])
  const kept = records.get(record.cellId)?.owner?.network?.transforms?.authority
  assert.equal(kept?.certificate, 'authority 1')
  const owner = { sandboxId: 'i3', envVars: {}, network: setting }
  const shape = { templateId: 'base', cpuCount: 1, memoryMb: 256, diskSizeMb: 64 }
  const named = sandboxes.create({ shape, owner, accessToken: 't', isNamed: true })
  await assert.rejects(named, { reason: 'name_says_more' })
})

const damagedCell = {
  kind: 'sandbox',
  cellId: 'c9',
  path: '/cells/c9',
  reason: 'its checksum is wrong',
} as const

test('a sandbox whose record cannot be read is refused and not found absent; its kill keeps its files', async () => {
  const halted: string[] = []
  const { create, sandboxes } = simulateNode({
    quarantined: [{ ...damagedCell, sandboxId: 'i9' }],
    overrides: {
      halt: async (cellId) => void halted.push(cellId),
      erase: async (cellId) => assert.fail(`${cellId} was erased`),
    },
  })
  assert.deepEqual(sandboxes.quarantined(), ['i9'])
  assert.deepEqual([sandboxes.isQuarantined('i9'), sandboxes.isQuarantined('i8')], [true, false])
  const refused = { reason: 'record_unreadable' }
  await assert.rejects(
    sandboxes.resume({ sandboxId: 'i9', accessToken: undefined, boot: false }),
    refused,
  )
  await assert.rejects(sandboxes.pause('i9', { keepMemory: true }), refused)
  await assert.rejects(sandboxes.snapshot('i9', 's1'), refused)
  await assert.rejects(create({ sandboxId: 'i9' }), { reason: 'id_taken' })
  await sandboxes.kill('i9')
  assert.deepEqual([halted, sandboxes.quarantined()], [['c9'], []])
})

test('a damaged record that does not show its id may be that of any sandbox that is not found', async () => {
  const { create, sandboxes } = simulateNode({ quarantined: [damagedCell] })
  await create({ sandboxId: 'i1' })
  assert.deepEqual([sandboxes.isQuarantined('i1'), sandboxes.isQuarantined('i2')], [false, true])
  assert.deepEqual(sandboxes.quarantined(), [])
})
