import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { simulateNode } from '@atoll/simulated-node/node'
import { connectLink } from '../../nodes/connect-link.ts'
import { createFleet } from './fleet.ts'

test('a claim of old records that fails is repeated, and the node is not used before', async () => {
  let failures = 1
  const fleet = createFleet({
    store: {
      register: async () => 'registered',
      async claimRecords() {
        failures -= 1
        if (failures >= 0) throw new Error('the store is full')
        return 0
      },
    },
    clock: systemClock,
    log: silentLogger,
  })
  fleet.add(connectLink(simulateNode().transport))
  const [member] = fleet.members()
  const { signal } = new AbortController()
  await assert.rejects(async () => member?.register(signal), /the store is full/)
  assert.equal(fleet.reaches('sim'), false)
  await member?.register(signal)
  assert.equal(fleet.reaches('sim'), true)
})

test('work for registered nodes begins with the first answer that the store accepts, and ends with the node', async () => {
  let outcome: 'registered' | 'superseded' = 'superseded'
  const fleet = createFleet({
    store: { register: async () => outcome, claimRecords: async () => 0 },
    clock: systemClock,
    log: silentLogger,
  })
  const begun: string[] = []
  const ended: string[] = []
  const work = (name: string) => () => {
    begun.push(name)
    return { close: async () => void ended.push(name) }
  }
  fleet.forEach(work('all'))
  fleet.forEachRegistered(work('before'))
  const remove = fleet.add(connectLink(simulateNode().transport))
  const [member] = fleet.members()
  const { signal } = new AbortController()
  await assert.rejects(async () => member?.register(signal), /a newer one is registered/)
  assert.deepEqual(begun, ['all'])
  outcome = 'registered'
  await member?.register(signal)
  await member?.register(signal)
  fleet.forEachRegistered(work('after'))
  assert.deepEqual(begun, ['all', 'before', 'after'])
  await remove()
  assert.deepEqual(ended.toSorted(), ['after', 'all', 'before'])
  await member?.register(signal)
  assert.equal(fleet.reaches('sim'), false)
  assert.deepEqual(begun, ['all', 'before', 'after'])
})

test('the IDs of the nodes in reach are listed anew only when a node comes or goes', async () => {
  const store = { register: async () => 'registered' as const, claimRecords: async () => 0 }
  const fleet = createFleet({ store, clock: systemClock, log: silentLogger })
  const { signal } = new AbortController()
  const add = async (id: string) => {
    const remove = fleet.add(connectLink(simulateNode(undefined, id).transport))
    await fleet.members().at(-1)?.register(signal)
    return remove
  }
  await add('a')
  const remove = await add('b')
  const both = fleet.ids()
  assert.deepEqual(both, ['a', 'b'])
  for (const member of fleet.members()) await member.register(signal)
  assert.equal(fleet.ids(), both)
  await remove()
  assert.deepEqual(fleet.ids(), ['a'])
  await add('c')
  assert.deepEqual(fleet.ids(), ['a', 'c'])
})
