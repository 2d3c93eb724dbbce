import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock as clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { silentLogger as log } from '@atoll/kit/log'
import { simulateNode } from '@atoll/simulated-node/node'
import { connectLink } from '../../nodes/connect-link.ts'
import { createFleet } from './fleet.ts'
import { createLoads } from './loads.ts'
import { createPlacing } from './placing.ts'

const shape = { nodeTemplateId: 'base', cpuCount: 1, memoryMb: 128, diskSizeMb: 0 }

/** A node that has not answered yet, while visits wait for a connection to the store. */
function setup() {
  const store = { register: async () => 'registered' as const, claimRecords: async () => 0 }
  const never = () => new Promise<never>(() => {})
  const background = { register: never, claimRecords: never }
  const fleet = createFleet({ store, background, clock, log })
  fleet.add(connectLink(simulateNode().transport))
  const records = { find: async () => undefined }
  return createPlacing({ fleet, loads: createLoads(), store: records, clock })
}

test('a create does not wait for the visits of nodes when no node has answered yet', async () => {
  assert.equal(await setup().place({ shape }, async (nodeId) => nodeId), 'sim')
})

test('a create on a node that has restarted does not wait for the visits of nodes', async () => {
  let starts = 0
  await setup().place({ shape }, async () => {
    starts += 1
    if (starts === 1) throw new Fault('unavailable', 'node_changed', 'The node has restarted')
  })
  assert.equal(starts, 2)
})
