import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunningSandbox, SandboxRecord, SandboxSpec } from '../domain/sandbox.ts'
import { parseSubnet, toSlot } from '../domain/slot.ts'
import { createSandboxEvents } from './events.ts'
import type { SandboxEvent } from './events.ts'
import { createSandboxes } from './sandboxes.ts'
import type { SandboxPorts } from './sandboxes.ts'

const subnet = parseSubnet('10.0.0.0/24')

/** A host in memory: records, processes and slots are sets that a test can look at. */
function setup(overrides: Partial<SandboxPorts> = {}, adopted: RunningSandbox[] = []) {
  const records = new Map<string, SandboxRecord>()
  const alive = new Set<number>()
  const slots = new Set<number>()
  const events = createSandboxEvents()
  const seen: SandboxEvent[] = []
  const watching = (async () => {
    for await (const event of events.watch(new AbortController().signal)) seen.push(event)
  })()
  void watching
  let nextPid = 100
  const ports: SandboxPorts = {
    records: {
      create: async (record) =>
        !records.has(record.sandboxId) && Boolean(records.set(record.sandboxId, record)),
      update: async (record) => void records.set(record.sandboxId, record),
    },
    runtime: {
      name: 'gvisor',
      idShift: 0,
      start: async () => {
        nextPid += 1
        alive.add(nextPid)
        return { pid: nextPid, started: 'now' }
      },
      remove: async () => {},
      list: async () => [],
    },
    mountRootfs: async ({ templateId }) =>
      templateId === 'base' ? { path: '/rootfs', hasSudo: true } : undefined,
    introduce: async () => {},
    isAlive: ({ pid }) => alive.has(pid),
    oomKills: async () => 0,
    bundleDir: (id) => `/bundles/${id}`,
    envdDir: () => '/envd',
    erase: async (id) => {
      const pid = records.get(id)?.process?.pid
      if (pid !== undefined) alive.delete(pid)
      records.delete(id)
    },
    ...overrides,
  }
  let nextSlot = 0
  const sandboxes = createSandboxes({
    ports,
    events,
    adopted,
    slots: {
      take: async () => {
        const slot = toSlot(subnet, 'atx-', nextSlot++)
        slots.add(slot.number)
        return slot
      },
      giveBack: async (slot) => void slots.delete(slot.number),
      slot: (number) => toSlot(subnet, 'atx-', number),
      close: async () => {},
    },
  })
  const create = (spec: Partial<SandboxSpec> = {}, signal?: AbortSignal) => {
    const whole = {
      sandboxId: 'i1',
      templateId: 'base',
      cpuCount: 1,
      memoryMb: 256,
      diskSizeMb: 64,
      ...spec,
    }
    const introduction = { ...whole, accessToken: undefined, envVars: {} }
    return sandboxes.create({ spec: whole, introduction, ...(signal && { signal }) })
  }
  return { sandboxes, create, records, alive, slots, seen }
}

test('a created sandbox is recorded as running with its process', async () => {
  const { create, records, sandboxes } = setup()
  await create()
  assert.equal(records.get('i1')?.phase, 'running')
  assert.equal(sandboxes.get('i1')?.slot.sandboxAddress, '10.0.0.2')
})

test('the same id twice is refused, also while the first is being created', async () => {
  const { create, slots } = setup()
  const results = await Promise.allSettled([create(), create()])
  assert.deepEqual(
    results.map((result) => result.status),
    ['fulfilled', 'rejected'],
  )
  await assert.rejects(create(), { reason: 'sandbox_exists' })
  assert.equal(slots.size, 1)
})

for (const [what, overrides] of Object.entries({
  'no such template': { mountRootfs: async () => undefined },
  'an envd that never answers': { introduce: () => Promise.reject(new Error('silent')) },
} satisfies Record<string, Partial<SandboxPorts>>)) {
  test(`${what} fails the create and leaves nothing`, async () => {
    const { create, records, slots, sandboxes } = setup(overrides)
    await assert.rejects(create())
    assert.deepEqual([records.size, slots.size, sandboxes.list().length], [0, 0, 0])
  })
}

test('a caller who leaves half way leaves nothing', async () => {
  const leaving = new AbortController()
  const { create, records, slots, alive } = setup({ introduce: async () => leaving.abort() })
  await assert.rejects(create({}, leaving.signal))
  assert.deepEqual([records.size, slots.size, alive.size], [0, 0, 0])
})

test('a kill waits for the create it races with, and two kills share one removal', async () => {
  const { create, sandboxes, records } = setup()
  const created = create()
  await Promise.all([sandboxes.kill('i1'), sandboxes.kill('i1'), created])
  assert.equal(records.size, 0)
  await sandboxes.kill('i1')
})

test('a sandbox that dies is removed and its end is told with the reason', async () => {
  const { create, sandboxes, alive, seen, slots } = setup({ oomKills: async () => 1 })
  await create()
  alive.clear()
  await sandboxes.reap()
  assert.deepEqual([sandboxes.list(), slots.size], [[], 0])
  await new Promise(setImmediate)
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
    const { create, slots } = setup()
    await assert.rejects(create(bad), { kind: 'invalid' })
    assert.equal(slots.size, 0)
  })
}
