/** Snapshots and built templates that the object store has, and does not have any more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import { simulateObjects } from '@atoll/simulated-node/objects'
import { startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'
import { build } from '../sim/build-client.ts'
import { takeSnapshot } from '../sim/snapshot-client.ts'

async function setUp() {
  const objects = simulateObjects()
  const first = simulateNode(undefined, 'first', objects)
  const second = simulateNode(undefined, 'second', objects)
  const api = await startApiUnderTest({ node: first, others: [second] })
  const nodes = [first, second] as const
  return { api, nodes, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() }
}

/** Waits until the record says whether the object store has the files of a build. */
async function waitUntil(api: ApiUnderTest, buildId: string, isDurable: boolean): Promise<void> {
  await waitFor(`a record with isDurable ${isDurable}`, async () => {
    const found = await api.withStores(({ templates }) => templates.findBuildById(buildId))
    return found?.isDurable === isDurable
  })
}

test('a built template counts as uploaded only as long as its node says so', async () => {
  await using fleet = await setUp()
  const { api, nodes } = fleet
  const { buildId } = await build(api)
  const home = nodes.find((node) => node.builds.templates.size > 0) ?? assert.fail('not built')
  const [id = ''] = home.builds.templates
  home.durableFiles.add(id)
  await waitUntil(api, buildId, true)
  home.durableFiles.delete(id)
  await waitUntil(api, buildId, false)
})

test('a snapshot counts as uploaded only as long as its node says so', async () => {
  await using fleet = await setUp()
  const { api, nodes } = fleet
  const snapshotId = await takeSnapshot(api, await api.create({ timeout: 3600 }))
  const [template] = await api.withStores(({ snapshots }) =>
    snapshots.list({ teamId: api.ours.teamId }, { limit: 1, after: undefined }),
  )
  const buildId = template?.buildId ?? assert.fail(snapshotId)
  const home = nodes.find(({ snapshots }) => snapshots.size > 0) ?? assert.fail('no snapshot')
  const [id = ''] = home.snapshots.keys()
  home.durableFiles.add(id)
  await waitUntil(api, buildId, true)
  home.durableFiles.delete(id)
  await waitUntil(api, buildId, false)
})

test('a node that has a copy of the files without an upload clears nothing', async () => {
  await using fleet = await setUp()
  const { api, nodes } = fleet
  const { buildId } = await build(api)
  const home = nodes.find((node) => node.builds.templates.size > 0) ?? assert.fail('not built')
  const other = nodes.find((node) => node !== home) ?? assert.fail('one node')
  const [id = ''] = home.builds.templates
  home.durableFiles.add(id)
  await waitUntil(api, buildId, true)
  const found = await api.withStores(async ({ builds, templates }) => {
    await builds.clearDurable(other.nodeId, [id])
    return templates.findBuildById(buildId)
  })
  assert.equal(found?.isDurable, true)
})
