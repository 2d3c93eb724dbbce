/** Several apis share the sampling of nodes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import type { Clock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { simulateNode } from '@atoll/simulated-node/node'
import type { SimulatedNode } from '@atoll/simulated-node/node'
import { Code } from '@connectrpc/connect'
import { startLease } from '../../app/lease.ts'
import { createLiveApis } from '../../app/live-apis.ts'
import { startSampling } from '../../app/metrics/sampling.ts'
import { createFleet } from '../../app/nodes/fleet.ts'
import { readProcessId } from '../../db/process-id.ts'
import { openDatabase, openStores } from '../../db/stores.ts'
import type { Stores } from '../../db/stores.ts'
import { ownerOf } from '../../domain/lease.ts'
import { connectLink } from '../../nodes/connect-link.ts'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import { makeStore, onPostgres, unsavedKeys } from '../../sim/store.ts'

const secondNs = 1_000_000_000n
const begin = Date.parse('2026-01-01T00:00:00Z') / 1000
/** Later than the moment of an interval at which the last node is asked. */
const start = '2026-01-01T00:00:01Z'

function simulateNodes(): readonly SimulatedNode[] {
  return Array.from({ length: 8 }, (_, index) => simulateNode(undefined, `node-${index}`))
}

interface Parts {
  readonly nodes: readonly SimulatedNode[]
  readonly stores: Stores
  readonly clock: Clock
}

/** Starts the sampling of one api, which knows these others. */
async function sample(
  processId: string,
  { nodes, stores, clock }: Parts,
  others: readonly string[] = [],
) {
  const log = silentLogger
  const samplings = new Map(nodes.map(({ nodeId }) => [nodeId, 0]))
  const fleet = createFleet({ store: stores.nodes, clock, log })
  for (const { transport, nodeId } of nodes) {
    const link = connectLink(transport)
    const read: typeof link.sandboxes.sample = (signal) => {
      samplings.set(nodeId, 1 + (samplings.get(nodeId) ?? 0))
      return link.sandboxes.sample(signal)
    }
    fleet.add({ ...link, sandboxes: { ...link.sandboxes, sample: read } })
  }
  await Promise.all(fleet.members().map((one) => one.register(AbortSignal.timeout(60_000))))
  const liveApis = createLiveApis(processId)
  const know = (ids: readonly string[]) =>
    liveApis.note(ids.map((id) => ({ processId: id, node: '' })))
  know(others)
  const { teamMetrics: teams, usage } = stores
  const sampling = startSampling({ teams, usage, clock, fleet, liveApis, log })
  return {
    /** Sets which other apis are alive for this one. */
    know,
    isMine: liveApis.isMine,
    /** Returns how often this api has sampled each node. */
    counts: () => [...samplings.values()],
    close: () => sampling.close(),
    [Symbol.asyncDispose]: () => sampling.close(),
  }
}

/** Each node has one sandbox that runs for an hour. */
async function setUp() {
  const place = await makeStore()
  const stores = await openStores(place.location, unsavedKeys())
  const nodes = simulateNodes()
  for (const node of nodes) node.start(sandboxOn(node), '127.0.0.2')
  setUsage(nodes, 0)
  const clock = manualClock(start)
  const parts = { nodes, stores, clock }
  const [first, other] = [await sample('first', parts), await sample('other', parts)]
  await waitFor('samplings of both', () => nodes.every(({ samplings }) => samplings === 2))
  const counts = () => nodes.map(({ samplings }) => samplings)
  return {
    ...{ nodes, stores, clock, first, other },
    /** Lets time pass, and waits until all nodes were sampled. */
    async pass(seconds: number) {
      const before = counts()
      clock.advance(seconds)
      await waitForMore(nodes, before, 1)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([first.close(), other.close()])
      await stores.close()
      await place[Symbol.asyncDispose]()
    },
  }
}

const sandboxOn = ({ nodeId }: SimulatedNode) => `i${nodeId}`

function setUsage(nodes: readonly SimulatedNode[], seconds: number): void {
  const usage = {
    ageNs: 3600n * secondNs,
    readAtNs: BigInt(seconds) * secondNs,
    cpuUsedNs: secondNs,
  }
  for (const node of nodes) node.setUsage(sandboxOn(node), usage)
}

const waitForMore = (nodes: readonly SimulatedNode[], before: readonly number[], count: number) =>
  waitFor(`${count} more samplings of each node`, () =>
    nodes.every(({ samplings }, index) => samplings >= count + (before[index] ?? 0)),
  )

test('once two apis know each other, each node is sampled by one of them', async () => {
  await using started = await setUp()
  const { first, other, nodes, pass } = started
  first.know(['other'])
  other.know(['first'])
  // The api that sampled a node before continues for two intervals.
  await pass(60)
  const before = [first.counts(), other.counts()]
  const rounds = 6
  for (let round = 0; round < rounds; round += 1) await pass(5)
  const after = [first.counts(), other.counts()]
  const samplings = nodes.map(({ nodeId }, index) => ({
    nodeId,
    byFirst: Number(after[0]?.[index]) - Number(before[0]?.[index]),
    byOther: Number(after[1]?.[index]) - Number(before[1]?.[index]),
  }))
  const expected = nodes.map(({ nodeId }) => {
    const isOfFirst = first.isMine(nodeId)
    return { nodeId, byFirst: isOfFirst ? rounds : 0, byOther: isOfFirst ? 0 : rounds }
  })
  assert.deepEqual(samplings, expected)
})

test('the nodes of an api that is gone are sampled by the others', async () => {
  await using started = await setUp()
  const { first, other, pass } = started
  first.know(['other'])
  other.know(['first'])
  await pass(60)
  await other.close()
  first.know([])
  for (let round = 0; round < 2; round += 1) await pass(5)
})

test('no sample is missing when an api joins that others notice before it samples', async () => {
  await using started = await setUp()
  const { nodes, stores, clock, first, other } = started
  await other.close()
  const seriesOf = async (node: SimulatedNode) => {
    const all = { start: 0, end: begin + 10_000 }
    const series = await stores.usage.series(sandboxOn(node), all, 5)
    return series.map(({ at }) => at - begin)
  }
  const timesOf = () => Promise.all(nodes.map(seriesOf))
  let seconds = 0
  /** Lets intervals pass, and waits for the sample of each. */
  const passTo = async (end: number) => {
    while (seconds < end) {
      seconds += 5
      setUsage(nodes, seconds)
      clock.advance(5)
      await waitFor(`samples of second ${seconds}`, async () =>
        (await timesOf()).every((times) => times.includes(seconds)),
      )
    }
  }
  await passTo(10)
  first.know(['joined'])
  await passTo(15)
  await using joined = await sample('joined', started, ['first'])
  await waitFor('first readings', () =>
    nodes.every(({ nodeId }, index) => !joined.isMine(nodeId) || joined.counts()[index] === 1),
  )
  await passTo(40)
  const expected = [5, 10, 15, 20, 25, 30, 35, 40]
  for (const times of await timesOf()) assert.deepEqual(times, expected)
})

test('an api takes over the nodes of a dead one when its lease has expired', async () => {
  await using store = await makeStore()
  const [node = assert.fail('no node'), ...others] = simulateNodes()
  const clock = manualClock(start)
  const stores = await openStores(store.location, unsavedKeys())
  const expiresAt = new Date(clock.now().getTime() + 60_000)
  await stores.leases.renew({ processId: 'dead', node: '' }, expiresAt)
  await stores.close()
  await using api = await startApiUnderTest({ store, node, others, clock })
  const own = await readProcessId(api.folder)
  const holders = [{ processId: own }, { processId: 'dead' }]
  const nodes = [node, ...others]
  const ofDead = nodes.filter(({ nodeId }) => ownerOf(nodeId, holders) === 'dead')
  const ofApi = nodes.filter((one) => !ofDead.includes(one))
  await waitFor('samplings of its own nodes', () => ofApi.every(({ samplings }) => samplings > 0))
  for (const { samplings } of ofDead) assert.equal(samplings, 0)
  clock.advance(61)
  await waitFor('samplings of all nodes', () => nodes.every(({ samplings }) => samplings > 0))
})

test('a lease shows other processes, what they do not reach, and that they are gone', async () => {
  await using place = await makeStore()
  const stores = await openStores(place.location, unsavedKeys())
  await using stack = new AsyncDisposableStack()
  stack.defer(() => stores.close())
  const deps = { leases: stores.leases, clock: systemClock, log: silentLogger }
  const first = await startLease({ processId: 'first', node: '' }, deps)
  stack.defer(() => first.close())
  let joins = 0
  first.liveApis.onJoin(() => (joins += 1))
  assert.ok(first.liveApis.isMine('node'))
  const second = await startLease({ processId: 'second', node: '' }, deps)
  assert.equal(second.liveApis.count(), 2)
  await waitFor('the first to know of the second', () => first.liveApis.count() === 2)
  assert.equal(joins, 1)

  const isOfFirst = first.liveApis.isMine('node')
  const owner = isOfFirst ? first.liveApis : second.liveApis
  const backup = isOfFirst ? second.liveApis : first.liveApis
  assert.equal(backup.isMine('node'), false)
  owner.noteReach('node', false)
  assert.equal(owner.isMine('node'), false)
  await waitFor('the other to take over', () => backup.isMine('node'))
  owner.noteReach('node', true)
  await waitFor('the return', () => !backup.isMine('node'))
  await second.close()
  await waitFor('the end of the second', () => first.liveApis.count() === 1)
  assert.ok(first.liveApis.isMine('node'))
})

test('an api that does not reach a node says so in its lease', onPostgres, async () => {
  await using api = await startApiUnderTest()
  const { db, close } = openDatabase(api.store.location)
  const untilNoted = (expected: string | null) =>
    waitFor(`the lease with ${expected}`, async () => {
      const { unreached } = await db.selectFrom('leases').selectAll().executeTakeFirstOrThrow()
      return unreached === expected
    })
  api.node.failAll(Code.Unavailable)
  await untilNoted(JSON.stringify([api.node.nodeId]))
  api.node.failAll(undefined)
  await untilNoted(null)
  await close()
})

test('when one of two apis stops, all nodes are still sampled', onPostgres, async () => {
  const [node = assert.fail('no node'), ...others] = simulateNodes()
  await using first = await startApiUnderTest({ node, others })
  await using other = await startApiUnderTest({ beside: first, others })
  const nodes = [node, ...others]
  const counts = () => nodes.map(({ samplings }) => samplings)
  await waitForMore(nodes, counts(), 2)
  await other.stop()
  await waitForMore(nodes, counts(), 2)
})
