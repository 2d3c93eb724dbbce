import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateNode } from '../../sim/node.ts'

test('rules are applied before a resume or a copy restores the processes', async () => {
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

test('rules are applied before the sandbox gets its identity, and can be replaced', async () => {
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

const setting = {
  allowOut: [],
  denyOut: ['9.9.9.9'],
  transforms: { domains: [{ pattern: 'a.b', headers: { a: 'b' } }] },
}

test('the sandbox trusts the authority before its rules apply, and the authority stays', async () => {
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

test('removed and added again, header rules use the same authority, and so does a copy', async () => {
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

test('an authority that cannot be installed leaves the old rules in force', async () => {
  const { create, sandboxes, rules } = simulateNode({
    overrides: { trust: () => Promise.reject(new Error('mute')) },
  })
  await create()
  rules.length = 0
  await assert.rejects(sandboxes.setNetwork('i1', setting), /mute/)
  assert.deepEqual([rules, sandboxes.running()[0]?.record.owner.network], [[], undefined])
})

test('envd gets the authority of its own sandbox, and a preassigned sandbox cannot get one', async () => {
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
