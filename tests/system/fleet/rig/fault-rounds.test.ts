/**
 * Rounds of faults under load: each kills one or two random parts or the database with SIGKILL, at a random moment, and starts
 * them again. `ATOLL_TEST_ROUNDS` sets the number of rounds and `ATOLL_TEST_SEED` repeats a run.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'e2b'
import { startBalancer } from '../../../../tools/fleet/balancer.ts'
import { startRig, waitForNodes } from '../../../../tools/fleet/rig.ts'
import type { Rig, RigNode } from '../../../../tools/fleet/rig.ts'
import { startLoad } from './load.ts'
import type { Connection } from './support.ts'
import {
  callApi,
  connectTo,
  createOn,
  readSandboxes,
  startProgram,
  testSettings,
  until,
  waitForShell,
} from './support.ts'

const rounds = Number(process.env['ATOLL_TEST_ROUNDS'] ?? 5)
const seed = Number(process.env['ATOLL_TEST_SEED'] ?? randomInt(2 ** 31))
/** The promise is 60 s on an idle machine. Tests must also pass on a loaded one. */
const agreementLimitMs = 300_000

/** Numbers from 0 to 1 that a seed determines (mulberry32). */
function createRandom(start: number): () => number {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function pick<T>(list: readonly T[], random: () => number): T {
  const found = list[Math.floor(random() * list.length)]
  if (found === undefined) throw new Error('there is nothing to pick')
  return found
}

/** Describes sandboxes as records show them, or as nodes have them: `ID state`, sorted. */
async function listRecords(rig: Rig): Promise<string[]> {
  const { status, body } = await callApi(connectTo(rig), 'GET', '/v2/sandboxes?limit=100')
  if (status !== 200) throw new Error(`GET /v2/sandboxes answers ${status}: ${body}`)
  const list: { sandboxID: string; state: string }[] = JSON.parse(body)
  return list.map(({ sandboxID, state }) => `${sandboxID} ${state}`).toSorted()
}

async function listOnNodes(rig: Rig): Promise<string[]> {
  const lists = await Promise.all(rig.nodes.map(readSandboxes))
  return lists
    .flat()
    .map(({ sandboxId, phase }) => `${sandboxId} ${phase}`)
    .toSorted()
}

/** A sandbox that runs on two nodes is in the list of nodes twice, so this fails for it. */
async function waitForAgreement(rig: Rig): Promise<void> {
  let last: unknown
  const agrees = async () => {
    const [records, onNodes] = [await listRecords(rig).catch(() => []), await listOnNodes(rig)]
    last = { records, onNodes }
    return records.length > 0 && JSON.stringify(records) === JSON.stringify(onNodes)
  }
  await until('records and nodes to agree', agrees, agreementLimitMs).catch((error: unknown) => {
    throw new Error(`records and nodes differ: ${JSON.stringify(last)}`, { cause: error })
  })
}

/** Kills sandboxes whose client got no answer to its create. */
async function killOthers(rig: Rig, kept: ReadonlySet<string>): Promise<void> {
  const ids = (await listRecords(rig)).map((line) => line.split(' ')[0] ?? '')
  for (const id of ids.filter((known) => !kept.has(known)))
    assert.equal((await callApi(connectTo(rig), 'DELETE', `/sandboxes/${id}`)).status, 204)
}

const isDatabase = ({ name }: Victim) => name === 'database'

interface Victim {
  readonly name: string
  kill(): Promise<void>
  start(): Promise<void>
}

function victimsOf({ parts, database }: Rig): Victim[] {
  const processes = parts.map((part) => ({
    name: part.name,
    kill: () => part.stop('SIGKILL'),
    start: () => part.start(),
  }))
  // The database comes first: an api does not start without it.
  return [
    { name: 'database', kill: () => database.stop('SIGKILL'), start: () => database.restart() },
    ...processes,
  ]
}

/**
 * Notes which nodes the apis give up. On a busy machine a part may need more than a minute to start, and then the sandboxes of
 * its node end, as documented.
 */
function followLosses() {
  const lost = new Set<string>()
  let rest = ''
  return {
    lost,
    onOutput(text: string): void {
      const lines = `${rest}${text}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const id = /"event":"node\.lost","nodeId":"([^"]+)"/.exec(line)?.[1]
        if (id !== undefined) lost.add(id)
      }
    },
  }
}

interface KeptSandbox {
  readonly node: RigNode
  readonly sandbox: Sandbox
  /** Command that prints `alive` while the program in the sandbox runs. */
  readonly program: string
}

async function createKept(rig: Rig, node: RigNode, connection: Connection): Promise<KeptSandbox> {
  const sandbox = await createOn(rig, node, connection)
  return { node, sandbox, program: await startProgram(sandbox) }
}

/** Checks that the sandbox has ended with its node, and creates another one. */
async function replace(
  rig: Rig,
  { node, sandbox }: KeptSandbox,
  connection: Connection,
): Promise<KeptSandbox> {
  const path = `/sandboxes/${sandbox.sandboxId}`
  const { status, body } = await callApi(connectTo(rig), 'GET', path)
  assert.equal(status, 404, body)
  return createKept(rig, node, connection)
}

/** Kills the victims, at a moment and for a time that the seed chooses. Nothing is waited for. */
async function causeFaults(victims: readonly Victim[], random: () => number): Promise<void> {
  try {
    await sleep(random() * 5_000)
    await Promise.all(victims.map((victim) => victim.kill()))
    await sleep(random() * 5_000)
  } finally {
    const [database, others] = [
      victims.filter(isDatabase),
      victims.filter((one) => !isDatabase(one)),
    ]
    for (const victim of database) await victim.start()
    // One after the other, the last one might be silent for more than a minute.
    await Promise.all(others.map((victim) => victim.start()))
  }
}

test(`${rounds} rounds of faults with the seed ${seed}: no sandbox is lost, and none runs twice`, async (t) => {
  const { lost, onOutput } = followLosses()
  await using rig = await startRig({ settings: testSettings, onOutput })
  await using apis = await startBalancer(rig.apis.map(({ url }) => url))
  await using edges = await startBalancer(rig.edges.map(({ url }) => url))
  const connection = { apiUrl: apis.url, sandboxUrl: edges.url, apiKey: rig.apiKey }
  let kept: KeptSandbox[] = []
  for (const node of rig.nodes) kept.push(await createKept(rig, node, connection))
  const random = createRandom(seed)
  const all = victimsOf(rig)

  for (let round = 1; round <= rounds; round += 1) {
    const sandboxes = kept.map(({ sandbox }) => sandbox)
    const load = startLoad(connection, { clients: 2, sandboxes })
    const chosen = new Set([pick(all, random), pick(all, random)])
    const victims = all.filter((victim) => chosen.has(victim))
    try {
      await causeFaults(victims, random)
    } finally {
      await load.stop()
    }
    await waitForNodes(rig)
    const failed = load.failures.length
    t.diagnostic(`${round}: ${victims.map(({ name }) => name).join(', ')}; ${failed} failures`)
    const after: KeptSandbox[] = []
    for (const one of kept) {
      const isLost = lost.has(one.node.id)
      if (isLost) t.diagnostic(`${round}: ${one.node.name} was lost`)
      else assert.equal(await waitForShell(one.sandbox, one.program), 'alive\n')
      after.push(isLost ? await replace(rig, one, connection) : one)
    }
    kept = after
    lost.clear()
    await waitForAgreement(rig)
    await killOthers(rig, new Set(kept.map(({ sandbox }) => sandbox.sandboxId)))
  }
  await killOthers(rig, new Set())
  await until('the nodes to be empty', async () => (await listOnNodes(rig)).length === 0)
})
