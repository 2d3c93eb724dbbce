import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { Code } from '@connectrpc/connect'
import { connectLink } from '../../nodes/connect-link.ts'
import { createFleet } from '../nodes/fleet.ts'
import { createCatalogueEntries } from './catalogue-entries.ts'
import { createFleetCatalogue } from './fleet-catalogue.ts'

const resources = { cpuCount: 1, memoryMb: 512, diskSizeMb: 1024 }

/** Two nodes with a template in their catalogues, which is installed on those given. */
async function setup(installedOn: readonly ('a' | 'b')[] = []) {
  const store = { register: async () => 'registered' as const, claimRecords: async () => 0 }
  const fleet = createFleet({ store, clock: systemClock, log: silentLogger })
  const [a, b] = [simulateNode(undefined, 'a'), simulateNode(undefined, 'b')]
  for (const { transport } of [a, b]) fleet.add(connectLink(transport))
  const { signal } = new AbortController()
  const register = () => Promise.all(fleet.members().map((member) => member.register(signal)))
  await register()
  for (const id of installedOn) {
    const order = { nodeTemplateId: 'toolsv1', resources }
    const install = fleet.member(id).catalogue.install(order, signal)
    for await (const { fraction } of install) assert.ok(fraction > 0)
  }
  const catalogue = createFleetCatalogue(fleet, { conditionOf: () => 'well' })
  const entries = createCatalogueEntries({
    nodes: catalogue,
    templates: {
      async locate() {
        return { id: 't1', teamId: undefined, public: true, isSnapshot: false }
      },
      async ensure() {},
    },
    base: resources,
    clock: systemClock,
  })
  return {
    ...{ a, b, register, list: () => catalogue.list() },
    isInstalled: async () => (await entries.read()).get('toolsv1')?.isInstalled,
  }
}

test('a node that does not answer does not hide the catalogue of the others', async () => {
  const { a, list } = await setup()
  a.failAll(Code.Unavailable)
  assert.deepEqual(
    (await list()).map(({ alias }) => alias),
    ['tools-v1'],
  )
})

test('without any answer the catalogue is unknown', async () => {
  const { a, b, list } = await setup()
  for (const node of [a, b]) node.failAll(Code.Unavailable)
  await assert.rejects(list)
})

test('a node that hangs does not hold up the others, and its answer counts once it comes', async () => {
  const { a, isInstalled } = await setup(['b'])
  const release = a.hold('listCatalogue')
  assert.equal(await isInstalled(), true)
  release()
  await waitFor('the answer', async () => (await isInstalled()) === false)
})

test('a node that did not answer at first is asked again', async () => {
  const { a, isInstalled } = await setup(['b'])
  a.fail('listCatalogue', Code.Unavailable)
  assert.equal(await isInstalled(), true)
  a.fail('listCatalogue', undefined)
  await waitFor('the answer', async () => (await isInstalled()) === false)
})

test('a node whose agent has started again is asked again, and others are not', async () => {
  const { a, b, register, isInstalled } = await setup(['a', 'b'])
  assert.equal(await isInstalled(), true)
  a.catalogue.uninstall()
  a.restartAgent()
  await register()
  await waitFor('the answer', async () => (await isInstalled()) === false)
  assert.equal(b.begun('listCatalogue'), 1)
})
