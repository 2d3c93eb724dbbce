/**
 * Rounds of faults under load: each kills one or two of the parts, the database and the S3 gateway with SIGKILL, at a random moment, and
 * starts them again. `ATOLL_TEST_ROUNDS=50 ATOLL_TEST_LIMIT_FACTOR=3` runs more rounds, and `ATOLL_TEST_SEED` repeats the choices of a run.
 */
import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Sandbox } from 'e2b'
import { startBalancer } from '../../../../tools/fleet/balancer.ts'
import { startRig, waitForNodes } from '../../../../tools/fleet/rig.ts'
import type { Rig, RigNode } from '../../../../tools/fleet/rig.ts'
import { roundsOr, seed } from '../../config.ts'
import { randomFrom } from '../../mutations.ts'
import { killOthers, waitForAgreement, watchForDoubles } from './agreement.ts'
import { causeFaults, chooseVictims, victimsOf } from './faults.ts'
import type { Victim } from './faults.ts'
import { startLoad, wrongSandbox } from './load.ts'
import { startObjectStore } from './object-store.ts'
import type { RigStore } from './object-store.ts'
import type { Connection } from './support.ts'
import {
  callApi,
  connectTo,
  createOn,
  nodeOf,
  readSandboxes,
  startProgram,
  testSettings,
  until,
  waitForShell,
} from './support.ts'
import { createTraveller } from './traveller.ts'
import type { Traveller } from './traveller.ts'

const rounds = roundsOr(5)
/** Longest pauses of the sandboxes that are paused and resumed all the time. */
const pausesMs = [1_000, 15_000]
const limitMs = 300_000
/** A node is lost after this time. */
const silenceMs = 60_000
const logFile = process.env['ATOLL_TEST_LOG']

/** A sandbox that runs on one node all the time. */
interface Resident {
  readonly node: RigNode
  readonly sandbox: Sandbox
  /** Command that prints `alive` while the program in the sandbox runs. */
  readonly program: string
}

const opened = new AsyncDisposableStack()
const random = randomFrom(seed)
let rig: Rig
let store: RigStore
let connection: Connection
let victims: Victim[]
let residents: Resident[] = []
let travellers: Traveller[] = []

async function startFleet(): Promise<void> {
  const settings = { ...testSettings, ATOLL_RUNTIME: 'gvisor' }
  const prepare = async (host: string) => {
    store = opened.use(await startObjectStore(host))
    return store.settings
  }
  const onOutput = (text: string, part: string) => {
    if (logFile !== undefined) appendFileSync(logFile, text.replaceAll(/^(?=.)/gm, `${part} `))
  }
  rig = opened.use(await startRig({ settings, prepare, onOutput }))
  const apis = opened.use(await startBalancer(rig.apis.map(({ url }) => url)))
  const edges = opened.use(await startBalancer(rig.edges.map(({ url }) => url)))
  connection = { apiUrl: apis.url, sandboxUrl: edges.url, apiKey: rig.apiKey }
  victims = victimsOf(rig, store)
  for (const node of rig.nodes) residents.push(await settleOn(node))
  for (const maxPauseMs of pausesMs) travellers.push(await startTraveller(maxPauseMs))
}

async function settleOn(node: RigNode): Promise<Resident> {
  const sandbox = await createOn(rig, node, connection)
  return { node, sandbox, program: await startProgram(sandbox) }
}

function startTraveller(maxPauseMs: number): Promise<Traveller> {
  // A generator of its own: the choice of victims depends on the seed alone.
  return createTraveller(connection, { random: randomFrom(seed + maxPauseMs), maxPauseMs })
}

/**
 * Whether the sandbox ended because its node was silent for a minute. On a machine that is busy enough, an agent that was killed may
 * need that long to start again.
 */
async function hasEndedWithNode(sandboxId: string): Promise<boolean> {
  const record = await until('the record', async () => {
    const reply = await callApi(connectTo(rig), 'GET', `/sandboxes/${sandboxId}`)
    return (reply.status === 200 || reply.status === 404) && reply
  })
  return record.status === 404 && /node lost/.test(record.body)
}

/** Checks that all sandboxes run. Replaces sandboxes whose node was lost, if its agent was away for so long that it had to be. */
async function checkSandboxes(
  { killed, outageMs }: { readonly killed: readonly Victim[]; readonly outageMs: number },
  say: (text: string) => void,
) {
  const isKilled = (node: RigNode) =>
    outageMs >= silenceMs && killed.some(({ name }) => name === node.name)
  const stays = async (sandboxId: string, mayEnd: boolean): Promise<boolean> => {
    if (!mayEnd || !(await hasEndedWithNode(sandboxId))) return true
    say(`${sandboxId} ended: its node was lost`)
    return false
  }
  residents = await Array.fromAsync(residents, async (one) => {
    if (!(await stays(one.sandbox.sandboxId, isKilled(one.node)))) return settleOn(one.node)
    assert.equal(await waitForShell(one.sandbox, one.program), 'alive\n')
    return one
  })
  travellers = await Array.fromAsync(travellers, async (one, index) => {
    one.checkContent()
    const mayEnd = rig.nodes.some(isKilled)
    if (!(await stays(one.sandboxId, mayEnd))) return startTraveller(pausesMs[index] ?? 0)
    await one.settle()
    return one
  })
}

async function runRound(round: number, say: (text: string) => void): Promise<void> {
  const chosen = chooseVictims(victims, random)
  const sandboxes = residents.map(({ sandbox }) => sandbox)
  await using doubles = watchForDoubles(rig)
  const load = startLoad(connection, { clients: 2, sandboxes, limitMs })
  const [doneBefore, failedBefore] = [countDone(), countFailed()]
  const travels = travellers.map((traveller) => traveller.start())
  let outageMs = 0
  try {
    outageMs = await causeFaults(chosen, random)
  } finally {
    await Promise.all([load.stop(), ...travels.map((travel) => travel.stop())])
  }
  const [done, failed] = [
    load.done() + countDone() - doneBefore,
    load.failures.length + countFailed() - failedBefore,
  ]
  const names = chosen.map(({ name }) => name).join(', ')
  say(`${round}: ${names}; ${done} operations succeeded, ${failed} failed`)
  assert.ok(done > 0)
  assert.deepEqual(
    load.failures.filter(({ message }) => message.includes(wrongSandbox)),
    [],
  )
  await waitForNodes(rig, limitMs)
  const agreedMs = await waitForAgreement(rig)
  await checkSandboxes({ killed: chosen, outageMs }, say)
  await waitForAgreement(rig)
  assert.deepEqual(doubles.found, [])
  const kept = [...residents.map(({ sandbox }) => sandbox.sandboxId), ...travellerIds()]
  await killOthers(rig, new Set(kept))
  const places = await Promise.all(travellerIds().map((id) => nodeOf(rig, id)))
  say(
    `${round}: agreed after ${agreedMs} ms; travellers on ${places.map((node) => node?.name).join(', ')}`,
  )
}

function travellerIds(): string[] {
  return travellers.map(({ sandboxId }) => sandboxId)
}

function countDone(): number {
  return travellers.reduce((sum, traveller) => sum + traveller.done(), 0)
}

function countFailed(): number {
  return travellers.reduce((sum, { failures }) => sum + failures.length, 0)
}

const timeout = 900_000 + rounds * 900_000
describe(`${rounds} rounds of faults, ATOLL_TEST_SEED=${seed}`, { concurrency: 1, timeout }, () => {
  before(startFleet)
  after(() => opened.disposeAsync())

  for (let round = 1; round <= rounds; round += 1) {
    test(`round ${round}: no sandbox is lost, runs twice or is older than its last pause`, (t) =>
      runRound(round, (text) => t.diagnostic(text)))
  }

  test('all sandboxes can be killed', async () => {
    await killOthers(rig, new Set())
    const count = async () => (await Promise.all(rig.nodes.map(readSandboxes))).flat().length
    await until('the nodes to be empty', async () => (await count()) === 0)
  })
})
