/** PostgreSQL under Patroni: its leader is killed, a standby takes over, and the apis follow. No part of the fleet is restarted. */
import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Sandbox } from 'e2b'
import { startPatroni } from '../../../../tools/fleet/patroni.ts'
import { startRig } from '../../../../tools/fleet/rig.ts'
import type { Rig } from '../../../../tools/fleet/rig.ts'
import { roundsOr } from '../../config.ts'
import { waitForAgreement } from './agreement.ts'
import {
  callApi,
  connectTo,
  createOn,
  createSandbox,
  startProgram,
  testSettings,
  until,
  waitForShell,
} from './support.ts'

const failovers = roundsOr(1)
/** Sandboxes that a client keeps at a time. */
const keptCount = 4
const retryMs = 200
const limitMs = 600_000
const logFile = process.env['ATOLL_TEST_LOG']

interface Client extends AsyncDisposable {
  /** Creates that the api has acknowledged so far. */
  created(): number
  failed(): number
  /** Returns the IDs of sandboxes that must run, and of sandboxes that must be gone. */
  stop(): Promise<{ readonly running: readonly string[]; readonly killed: readonly string[] }>
}

/** Creates sandboxes through both apis all the time, and kills the oldest. */
function startClient(rig: Rig): Client {
  const running: string[] = []
  const killed: string[] = []
  let [created, failed, isStopping] = [0, 0, false]
  const work = async (turn: number): Promise<void> => {
    const connection = connectTo(rig, turn % rig.apis.length)
    const oldest = running.length >= keptCount ? running[0] : undefined
    if (oldest === undefined) {
      running.push((await createSandbox(connection)).sandboxId)
      created += 1
      return
    }
    const { status, body } = await callApi(connection, 'DELETE', `/sandboxes/${oldest}`)
    // 404: the answer to an earlier attempt did not arrive.
    if (status !== 204 && status !== 404) throw new Error(`a kill answers ${status}: ${body}`)
    killed.push(oldest)
    running.shift()
  }
  const repeat = async () => {
    for (let turn = 0; !isStopping; turn += 1) {
      await work(turn).catch(async () => {
        failed += 1
        await sleep(retryMs)
      })
    }
  }
  const repeating = repeat()
  const end = async () => {
    isStopping = true
    await repeating
  }
  return {
    created: () => created,
    failed: () => failed,
    async stop() {
      await end()
      return { running, killed }
    },
    [Symbol.asyncDispose]: end,
  }
}

async function waitForCreates(client: Client, count: number): Promise<void> {
  const before = client.created()
  await until(`${count} creates`, async () => client.created() >= before + count, limitMs)
}

async function checkRecord(rig: Rig, sandboxId: string, expected: number): Promise<void> {
  for (const [api] of rig.apis.entries()) {
    const { status, body } = await callApi(connectTo(rig, api), 'GET', `/sandboxes/${sandboxId}`)
    assert.equal(status, expected, `${sandboxId} at api ${api + 1}: ${body}`)
  }
}

test('a failover of PostgreSQL loses no acknowledged create, and sandboxes run on', async (t) => {
  const onOutput = (text: string, part: string) => {
    if (logFile !== undefined) appendFileSync(logFile, text.replaceAll(/^(?=.)/gm, `${part} `))
  }
  const options = { edges: 1, nodes: 2, settings: testSettings, onOutput }
  await using rig = await startRig({ ...options, startDatabase: startPatroni })
  const [node] = rig.nodes
  assert.ok(node)
  const resident = await createOn(rig, node, connectTo(rig))
  const program = await startProgram(resident)
  const pids = rig.parts.map((part) => part.pid())

  for (let round = 1; round <= failovers; round += 1) {
    await using client = startClient(rig)
    await waitForCreates(client, keptCount + 1)
    await rig.database.stop('SIGKILL')
    const killedAt = performance.now()
    assert.equal(await waitForShell(resident, program), 'alive\n')
    // The answer to the first may have been on its way.
    await waitForCreates(client, 2)
    const seconds = Math.round((performance.now() - killedAt) / 1000)
    await waitForCreates(client, keptCount)
    const { running, killed } = await client.stop()
    t.diagnostic(`failover ${round}: creates again after ${seconds} s; ${client.failed()} failed`)

    for (const sandboxId of running) {
      await checkRecord(rig, sandboxId, 200)
      const sandbox = await Sandbox.connect(sandboxId, connectTo(rig))
      assert.equal(await waitForShell(sandbox, 'hostname'), `${sandboxId}\n`)
    }
    for (const sandboxId of killed) await checkRecord(rig, sandboxId, 404)
    assert.equal(await waitForShell(resident, program), 'alive\n')
    await waitForAgreement(rig)
    for (const id of running)
      assert.equal((await callApi(connectTo(rig), 'DELETE', `/sandboxes/${id}`)).status, 204)
    // The killed server is replaced by a new standby, which can be the leader next time.
    if (round < failovers) await rig.database.restart()
  }
  assert.deepEqual(
    rig.parts.map((part) => part.isRunning() && part.pid()),
    pids,
  )
})
