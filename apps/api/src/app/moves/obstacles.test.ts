import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { simulateNode } from '@atoll/simulated-node/node'
import { connectLink } from '../../nodes/connect-link.ts'
import { createFleet } from '../nodes/fleet.ts'
import { createLoads } from '../nodes/loads.ts'
import { createPlacing } from '../nodes/placing.ts'
import { findObstacle } from './obstacles.ts'

const gigabyte = 1024 ** 3
const small = { memoryBytes: 1, diskBytes: 1 }

/** Nodes with an object store. Simulated nodes have 8 GB of memory and 5 bytes of disk free. */
async function setUp(ids: readonly string[]) {
  const store = {
    register: async () => 'registered' as const,
    claimRecords: async () => 0,
    find: async () => undefined,
  }
  const nodes = ids.map((id) => simulateNode(undefined, id, simulateObjects()))
  const fleet = createFleet({ store, clock: systemClock, log: silentLogger })
  for (const { transport } of nodes) fleet.add(connectLink(transport))
  const loads = createLoads()
  const placing = createPlacing({ fleet, loads, store, clock: systemClock })
  const { signal } = new AbortController()
  const register = () => Promise.all(fleet.members().map((member) => member.register(signal)))
  await register()
  return {
    ...{ nodes, placing, register },
    async measure(id: string) {
      loads.beginMeasuring(id)(await fleet.member(id).sandboxes.measure(signal))
    },
    obstacle: (size = small) => findObstacle({ fleet, placing }, 'home', size) ?? '',
  }
}

test('a sandbox that no other node has room for is not paused', async () => {
  const { obstacle, measure } = await setUp(['home', 'other'])
  assert.equal(obstacle({ memoryBytes: 9 * gigabyte, diskBytes: 0 }), '')
  await measure('other')
  assert.match(obstacle({ memoryBytes: 9 * gigabyte, diskBytes: 0 }), /room for the 9216 MB of mem/)
  assert.match(obstacle({ memoryBytes: 1, diskBytes: 5 }), /has room/)
  assert.equal(obstacle({ memoryBytes: 1, diskBytes: 4 }), '')
})

test('a sandbox whose memory no other node can restore is not paused', async () => {
  const { nodes, obstacle, register } = await setUp(['home', 'other'])
  const [home, other] = nodes
  const say = async (
    node: typeof home,
    facts: Parameters<NonNullable<typeof home>['setSuitability']>[0],
  ) => {
    node?.setSuitability(facts)
    await register()
  }
  await say(other, { memoryFormat: 'sim 2' })
  assert.match(obstacle(), /same runtime release/)
  await say(home, { memoryFormat: 'sim 2' })
  assert.equal(obstacle(), '')
  await say(home, { cpuFeatures: ['avx2', 'avx512f', 'sse4_2'] })
  assert.match(obstacle(), /all CPU features/)
  await say(other, { cpuFeatures: ['amx_tile', 'avx2', 'avx512f', 'sse4_2'] })
  assert.equal(obstacle(), '')
  // An agent of an older release says nothing.
  await say(other, { memoryFormat: '', cpuFeatures: [] })
  assert.equal(obstacle(), '')
})

test('a suitable node counts only if it takes sandboxes', async () => {
  const { nodes, placing, obstacle, register } = await setUp(['home', 'other', 'third'])
  nodes[1]?.setSuitability({ memoryFormat: 'sim 2' })
  await register()
  assert.equal(obstacle(), '')
  placing.noteStatus('third', 'draining')
  assert.match(obstacle(), /same runtime release/)
  placing.noteStatus('other', 'draining')
  assert.match(obstacle(), /takes sandboxes/)
})
