import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { simulateNode } from '@atoll/simulated-node/node'
import { Code } from '@connectrpc/connect'
import { connectLink } from '../../nodes/connect-link.ts'
import { createFleet } from '../nodes/fleet.ts'
import { createFleetCatalogue } from './fleet-catalogue.ts'

async function setup() {
  const store = { register: async () => 'registered' as const, claimRecords: async () => 0 }
  const fleet = createFleet({ store, clock: systemClock, log: silentLogger })
  const nodes = ['a', 'b'].map((id) => simulateNode(undefined, id))
  for (const { transport } of nodes) fleet.add(connectLink(transport))
  const { signal } = new AbortController()
  for (const member of fleet.members()) await member.register(signal)
  const catalogue = createFleetCatalogue(fleet)
  return { nodes, list: () => catalogue.list(signal) }
}

test('a node that does not answer does not hide the catalogue of the others', async () => {
  const { nodes, list } = await setup()
  nodes[0]?.failAll(Code.Unavailable)
  assert.deepEqual(
    (await list()).map(({ alias }) => alias),
    ['tools-v1'],
  )
})

test('without any answer the catalogue is unknown', async () => {
  const { nodes, list } = await setup()
  for (const node of nodes) node.failAll(Code.Unavailable)
  await assert.rejects(list)
})
