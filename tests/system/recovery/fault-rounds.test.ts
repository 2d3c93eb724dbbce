import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { waitFor } from '@atoll/kit/wait'
import { startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { roundsOr, seed } from '../config.ts'
import { readCounter, startCounter } from '../counter.ts'
import {
  cells,
  countPrewarmed,
  egressesOf,
  routedSandboxes,
  namesOf,
  spawnerOf,
} from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { callers, minSandboxes, startLifecycleChurn } from './lifecycle-churn.ts'
import type { Failure } from './lifecycle-churn.ts'
import type { LifecycleAccount } from './lifecycle-requests.ts'
import { randomFrom } from '../mutations.ts'
import { serverErrors } from '../server-errors.ts'
import { killRuntimeProcess, targets } from './runtime-kill.ts'
import type { RuntimeKill } from './runtime-kill.ts'
import { consistentTraces, tracesOf } from '../traces.ts'

/** Each round kills a process while sandboxes are paused, resumed and copied. `ATOLL_TEST_ROUNDS=100` runs more rounds. */
const rounds = roundsOr(3)
/** Longest time before the kill. */
const maxDelayMs = 2_000
/** Longest wait for the process to kill. */
const killLimitMs = 5_000
/** Records and node agree within five seconds of the server's first answer, on a machine that does nothing else. */
const agreementLimitMs = 60_000
/** Unreferenced copies are removed by the next sweep, and warm pools may still be filling. */
const cleanupLimitMs = 120_000

/** Rules with names need an egress process, which a round may kill. */
const nameRules = { allowOut: ['shop.example'], denyOut: ['0.0.0.0/0'] }

const pools = {
  off: { ATOLL_READY_SANDBOXES: '0', ATOLL_POOL_MEMORY_MB: '0' },
  on: { ATOLL_READY_SANDBOXES: '1', ATOLL_POOL_MEMORY_MB: '400' },
}

describe(
  `faults under pauses, resumes and copies, ATOLL_TEST_SEED=${seed}`,
  { concurrency: 1, timeout: 300_000 + rounds * 120_000 },
  () => {
    const random = randomFrom(seed)
    const acknowledged: LifecycleAccount = {
      sandboxes: new Map(),
      killed: new Set(),
      snapshots: new Map(),
      deletedSnapshots: new Set(),
    }
    const { sandboxes } = acknowledged
    let cloud: HttpCloud
    let names: Names
    let url: string

    before(async () => {
      cloud = await startCloud({
        ...pools.off,
        ATOLL_RUNTIME: 'gvisor',
        ATOLL_READY_SLOTS: '0',
        ATOLL_BASE_DISK_SIZE_MB: '64',
        ATOLL_BASE_MEMORY_MB: '256',
      })
      url = cloud.installation.url
      names = await namesOf(cloud.installation.dataDir)
      await populate()
    })
    after(() => cloud?.[Symbol.asyncDispose]())

    for (let round = 1; round <= rounds; round += 1) {
      test(`round ${round} of ${rounds}`, async (t) => {
        const fault = await (faults[random(faults.length)] ?? assert.fail())()
        const states = await waitForAgreement()
        t.diagnostic(`${fault.description}; ${summary(states)}`)
        checkStates(states, fault)
        await checkCounters(states, round === rounds)
        await populate()
        if (fault.failures.length <= fault.maxFailures) return
        const errors = await serverErrors(cloud.installation.dataDir)
        assert.fail(`${describeFailures(fault.failures)}\n${errors}`)
      })
    }

    test('the host is clean after all rounds', async () => {
      await Promise.all([...sandboxes.keys()].map(kill))
      for (const id of await listSnapshots()) {
        const path = `/templates/${encodeURIComponent(id)}`
        assert.equal((await cloud.platform('DELETE', path)).status, 204)
      }
      assert.deepEqual(await waitForAgreement(), new Map())
    })

    const faults = [crashServer, crashServer, killSpawner, killEgress, killRuntime, killRuntime]

    interface Fault {
      readonly description: string
      readonly failures: readonly Failure[]
      /** Maximum number of failed requests. Requests that a killed server left unanswered do not count. */
      readonly maxFailures: number
      readonly runtimeKill?: RuntimeKill | undefined
    }

    async function crashServer(): Promise<Fault> {
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      // There is no state to wait for: the kill comes at a random moment.
      await pause(random(maxDelayMs))
      churn.abort()
      await cloud.installation.crash()
      const failures = await churn.failures
      const setting = random(3) === 0 ? 'on' : 'off'
      if (random(4) === 0) {
        const starting = cloud.installation.start(pools[setting]).catch(() => {})
        await pause(random(maxDelayMs))
        await cloud.installation.crash()
        await starting
      }
      await cloud.installation.start(pools[setting])
      return { description: `server killed, pools ${setting}`, failures, maxFailures: 0 }
    }

    /** Kills the spawner, and with it all commands under way. */
    async function killSpawner(): Promise<Fault> {
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      await pause(random(maxDelayMs))
      process.kill((await spawnerOf(names)) ?? assert.fail('no spawner'), 'SIGKILL')
      churn.stop()
      const failures = await churn.failures
      const description = `spawner killed; ${describeFailures(failures)}`
      return { description, failures, maxFailures: callers }
    }

    /** Kills the egress process. Rule changes wait for its successor. */
    async function killEgress(): Promise<Fault> {
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      await pause(random(maxDelayMs))
      for (const pid of await egressesOf(names)) process.kill(pid, 'SIGKILL')
      churn.stop()
      const failures = await churn.failures
      return {
        description: `egress killed; ${describeFailures(failures)}`,
        failures,
        maxFailures: 0,
      }
    }

    async function killRuntime(): Promise<Fault> {
      const target = targets[random(targets.length)] ?? assert.fail()
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      await pause(random(maxDelayMs))
      const signal = AbortSignal.timeout(killLimitMs)
      const victim = await killRuntimeProcess(target, names, { random, signal })
      churn.stop()
      const failures = await churn.failures
      const description = `${target} ${victim ? 'killed' : 'not found'}; ${describeFailures(failures)}`
      return { description, failures, maxFailures: victim ? 1 : 0, runtimeKill: victim }
    }

    /** Waits until API and node report the same sandboxes, and the host has only their resources. */
    async function waitForAgreement(): Promise<Map<string, string>> {
      const states = await eventually(
        'the API and the node to agree',
        async () => ({ actual: await listStates(), expected: await readCellPhases() }),
        agreementLimitMs,
      )
      const stateList = [...states.values()]
      const pausedCount = stateList.filter((state) => state === 'paused').length
      await eventually(
        'the host to hold only resources of sandboxes',
        async () => {
          const prewarmedCount = await countPrewarmed(names)
          const actual = await tracesOf(names)
          const storedCounts = { paused: pausedCount, snapshots: (await listSnapshots()).length }
          const runningCount = stateList.length - pausedCount + prewarmedCount
          return { actual, expected: consistentTraces(actual, runningCount, storedCounts) }
        },
        cleanupLimitMs,
      )
      await eventually(
        'one egress process, and a redirect for each sandbox with name rules',
        async () => ({
          actual: {
            processes: (await egressesOf(names)).length,
            redirects: await routedSandboxes(names),
          },
          expected: { processes: 1, redirects: await countNameRules(states) },
        }),
        agreementLimitMs,
      )
      return states
    }

    /** Returns how many running sandboxes have name rules. */
    async function countNameRules(states: ReadonlyMap<string, string>): Promise<number> {
      const running = [...states].filter(([, state]) => state === 'running')
      const replies = await Promise.all(
        running.map(([id]) => cloud.platform('GET', `/sandboxes/${id}`)),
      )
      return replies.filter(({ json }) => Object(json).network?.allowOut).length
    }

    async function eventually<T>(
      what: string,
      readState: () => Promise<{ readonly actual: T; readonly expected: T }>,
      timeoutMs: number,
    ): Promise<T> {
      const match = await waitFor(
        what,
        async () => {
          const { actual, expected } = await readState()
          return isDeepStrictEqual(actual, expected) && { actual }
        },
        { timeoutMs },
      ).catch(() => undefined)
      if (match) return match.actual
      const { actual, expected } = await readState()
      assert.deepEqual(actual, expected)
      return actual
    }

    async function listStates(): Promise<Map<string, string>> {
      const { json } = await cloud.platform('GET', '/v2/sandboxes?state=running,paused&limit=100')
      const items: { sandboxID: string; state: string }[] = Object(json)
      return sorted(items.map(({ sandboxID, state }) => [sandboxID, state]))
    }

    async function readCellPhases(): Promise<Map<string, string>> {
      const phases = (await cells(names.dataDir)).flatMap(({ owner, phase = 'unreadable' }) =>
        owner === undefined ? [] : [[owner, phase] as const],
      )
      return sorted(phases)
    }

    async function listSnapshots(): Promise<string[]> {
      const { json } = await cloud.platform('GET', '/snapshots?limit=100')
      const items: { snapshotID: string }[] = Object(json)
      return items.map(({ snapshotID }) => snapshotID)
    }

    /** Checks that acknowledged states hold, and resolves the outcome of unanswered requests. */
    function checkStates(states: ReadonlyMap<string, string>, fault: Fault): void {
      for (const [id, entry] of sandboxes) {
        const state = states.get(id)
        // The kill may also have ended a sandbox that was already running.
        const isVictim = fault.runtimeKill?.sandboxId === id && entry.state === 'running'
        if (state === undefined && (entry.mayBeGone || isVictim)) {
          sandboxes.delete(id)
          continue
        }
        assert.ok(state !== undefined, `${id} is lost: it was ${entry.state}`)
        if (entry.state !== 'unclear') assert.equal(state, entry.state, id)
        entry.state = state === 'paused' ? 'paused' : 'running'
        entry.mayBeGone = false
      }
      const revived = [...acknowledged.killed].filter((id) => states.has(id))
      assert.deepEqual(revived, [], 'killed sandboxes came back')
    }

    /** Checks that every sandbox continues from its counter. Some stay paused for another round. */
    async function checkCounters(states: ReadonlyMap<string, string>, isLast: boolean) {
      const toConnect = [...states].filter(
        ([, state]) => state === 'running' || isLast || random(3) > 0,
      )
      await Promise.all(toConnect.map(([id, state]) => checkCounter(id, state === 'paused')))
      const snapshots = new Set(await listSnapshots())
      for (const id of acknowledged.snapshots.keys()) assert.ok(snapshots.has(id), `${id} is lost`)
      for (const id of acknowledged.deletedSnapshots)
        assert.ok(!snapshots.has(id), `${id} came back`)
    }

    async function checkCounter(id: string, isPaused: boolean): Promise<void> {
      const path = `/sandboxes/${id}/connect`
      const { status, text, json } = await cloud.platform('POST', path, { timeout: 3600 })
      assert.equal(status, isPaused ? 201 : 200, `${id}: ${text}`)
      const sandbox: HttpSandbox = Object(json)
      const count = await readCounter(url, sandbox)
      // The counter of a copy is unknown if its caller got no response.
      const { count: minimum = 0 } = sandboxes.get(id) ?? {}
      assert.ok(count >= minimum, `${id} went back from ${minimum} to ${count}`)
      sandboxes.set(id, { sandbox, count, state: 'running', mayBeGone: false })
    }

    async function kill(id: string): Promise<void> {
      assert.equal((await cloud.platform('DELETE', `/sandboxes/${id}`)).status, 204)
      sandboxes.delete(id)
      acknowledged.killed.add(id)
    }

    async function populate(): Promise<void> {
      const surplus = [...sandboxes.keys()].slice(minSandboxes + 1)
      await Promise.all(surplus.map(kill))
      const missing = Math.max(minSandboxes - sandboxes.size, 0)
      await Promise.all(Array.from({ length: missing }, create))
    }

    async function create(): Promise<void> {
      const sandbox = await cloud.createSandbox({ timeout: 3600, network: nameRules })
      await startCounter(url, sandbox)
      const count = await readCounter(url, sandbox)
      sandboxes.set(sandbox.sandboxID, { sandbox, count, state: 'running', mayBeGone: false })
    }
  },
)

function sorted(entries: readonly (readonly [string, string])[]): Map<string, string> {
  return new Map(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function summary(states: ReadonlyMap<string, string>): string {
  const pausedCount = [...states.values()].filter((state) => state === 'paused').length
  return `${states.size - pausedCount} run, ${pausedCount} paused`
}

function describeFailures(failures: readonly Failure[]): string {
  const lines = failures.map(
    ({ request, sandboxId, answer }) => `${request} ${sandboxId}: ${answer}`,
  )
  return lines.join('\n') || 'no request failed'
}
