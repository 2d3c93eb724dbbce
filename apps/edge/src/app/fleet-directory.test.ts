import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedNode } from '@atoll/simulated-node/node'
import { Code, createClient } from '@connectrpc/connect'
import { nodeSandboxSource } from '../nodes/source.ts'
import { createFleetDirectory } from './fleet-directory.ts'
import type { Locate } from './fleet-directory.ts'

function setup(t: TestContext) {
  const nodes = [
    simulateNode(() => '127.0.0.2', 'a'),
    simulateNode(() => '127.0.0.2', 'b'),
  ] as const
  const sources = nodes.map(({ transport }) => nodeSandboxSource(transport))
  const directory = createFleetDirectory(sources, silentLogger)
  t.after(() => directory.close())
  return { nodes, directory }
}

async function start({ transport }: SimulatedNode, sandboxId: string, generation: number) {
  const shape = { templateId: 'base', cpuCount: 1, memoryMb: 128, diskSizeMb: 16 }
  await createClient(NodeService, transport).createSandbox({ ...shape, sandboxId, generation })
}

test('two nodes may use one address for two sandboxes', async (t) => {
  const { nodes, directory } = setup(t)
  await start(nodes[0], 'one', 1)
  await start(nodes[1], 'two', 1)
  const [one, two] = [await directory.find('one'), await directory.find('two')]
  let cuts = 0
  one?.attach(() => (cuts += 1))
  assert.deepEqual([one?.address, two?.address], ['127.0.0.2', '127.0.0.2'])
  nodes[1].end('two')
  await waitFor('the end of the other', async () => (await directory.find('two')) === undefined)
  assert.deepEqual([cuts, directory.open], [0, 1])
})

test('of two nodes with a sandbox, the one with the newer generation gets the traffic', async (t) => {
  const { nodes, directory } = setup(t)
  await start(nodes[0], 'moved', 1)
  const before = await directory.find('moved')
  await start(nodes[1], 'moved', 2)
  const after = await waitFor('the newer one', async () => {
    const found = await directory.find('moved')
    return found !== before && found
  })
  nodes[0].end('moved')
  let isCut = false
  before?.attach(() => (isCut = true))
  await waitFor('the cut of the old one', () => isCut)
  assert.equal(await directory.find('moved'), after)
})

test('a node that does not answer hides only its own sandboxes', async (t) => {
  const { nodes, directory } = setup(t)
  await start(nodes[0], 'here', 1)
  nodes[1].failAll(Code.Unavailable)
  nodes[1].breakWatches()
  assert.equal((await directory.find('here'))?.id, 'here')
  await assert.rejects(async () => directory.find('elsewhere'), { kind: 'unavailable' })
})

/** A remote node, and a lookup that fails while no api answers. */
function setupRemote(t: TestContext, holdMs?: number) {
  const node = simulateNode(() => '127.0.0.2', 'a')
  const calls = { count: 0, hasApi: false }
  const locate: Locate = async () => {
    calls.count += 1
    if (calls.hasApi) return 'a'
    throw new Fault('unavailable', 'api_unreachable', 'No api answers')
  }
  const directory = createFleetDirectory([], silentLogger, locate, holdMs)
  t.after(() => directory.close())
  const join = () => directory.add('a', nodeSandboxSource(node.transport))
  return { node, calls, directory, join }
}

test('a lookup waits for an api, and all requests for the sandbox share it', async (t) => {
  const { node, calls, directory, join } = setupRemote(t)
  join()
  node.failAll(Code.Unavailable)
  node.breakWatches()
  const waiting = [1, 2].map(async () => directory.find('late'))
  await waitFor('the first attempt', () => calls.count > 0)
  node.failAll(undefined)
  await start(node, 'late', 1)
  calls.hasApi = true
  const found = await Promise.all(waiting)
  assert.deepEqual(
    found.map((one) => one?.id),
    ['late', 'late'],
  )
})

test('without an api, a sandbox that the watch of its node reports is found', async (t) => {
  const { node, calls, directory, join } = setupRemote(t)
  await start(node, 'reported', 1)
  const waiting = directory.find('reported')
  await waitFor('the first attempt', () => calls.count > 0)
  join()
  assert.equal((await waiting)?.id, 'reported')
  assert.equal(calls.hasApi, false)
})

test('a lookup without an api ends with a fault that says so', async (t) => {
  const { directory } = setupRemote(t, 0)
  await assert.rejects(async () => directory.find('unknown'), { reason: 'api_unreachable' })
})
