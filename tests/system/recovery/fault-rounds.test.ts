import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { waitFor } from '@atoll/kit/wait'
import { startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { roundsOr, seed } from '../config.ts'
import { readCounter, startCounter } from '../counter.ts'
import { cells, egressesOf, routedSandboxes, namesOf, spawnerOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { callers, fewest, startLifecycleChurn } from './lifecycle-churn.ts'
import type { Failure } from './lifecycle-churn.ts'
import type { LifecycleAccount } from './lifecycle-requests.ts'
import { randomFrom } from '../mutations.ts'
import { serverErrors } from '../server-errors.ts'
import { strike, targets } from './strike.ts'
import type { Strike } from './strike.ts'
import { consistentTraces, tracesOf } from '../traces.ts'

/** Each round kills a process while sandboxes are paused, resumed and copied. `ATOLL_TEST_ROUNDS=100` runs more rounds. */
const rounds = roundsOr(3)
/** Longest time before the kill. */
const longestMs = 2_000
/** Longest wait for the process to kill. */
const strikeLimitMs = 5_000
/** Records and node agree within five seconds of the server's first answer, on a machine that does nothing else. */
const promisedMs = 60_000
/** Unreferenced copies are removed by the next sweep, and warm pools may still be filling. */
const tidyMs = 120_000

/** So that there is an egress process to be killed. */
const fewNames = { allowOut: ['shop.example'], denyOut: ['0.0.0.0/0'] }

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
        const hit = await (hits[random(hits.length)] ?? assert.fail())()
        const states = await agreement()
        t.diagnostic(`${hit.what}; ${summary(states)}`)
        checkStates(states, hit)
        await checkCounters(states, round === rounds)
        await populate()
        if (hit.failures.length <= hit.mayFail) return
        const errors = await serverErrors(cloud.installation.dataDir)
        assert.fail(`${describeFailures(hit.failures)}\n${errors}`)
      })
    }

    test('nothing is left of any round', async () => {
      await Promise.all([...sandboxes.keys()].map(kill))
      for (const id of await listedSnapshots()) {
        const path = `/templates/${encodeURIComponent(id)}`
        assert.equal((await cloud.platform('DELETE', path)).status, 204)
      }
      assert.deepEqual(await agreement(), new Map())
    })

    const hits = [crashServer, crashServer, killSpawner, killEgress, strikeRuntime, strikeRuntime]

    interface Hit {
      readonly what: string
      readonly failures: readonly Failure[]
      /** Maximum number of failed requests. Requests that a killed server left unanswered do not count. */
      readonly mayFail: number
      readonly strike?: Strike | undefined
    }

    async function crashServer(): Promise<Hit> {
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      // There is no state to wait for: the kill is to come at any moment.
      await pause(random(longestMs))
      churn.giveUp()
      await cloud.installation.crash()
      const failures = await churn.ended
      const setting = random(3) === 0 ? 'on' : 'off'
      if (random(4) === 0) {
        const starting = cloud.installation.start(pools[setting]).catch(() => {})
        await pause(random(longestMs))
        await cloud.installation.crash()
        await starting
      }
      await cloud.installation.start(pools[setting])
      return { what: `server killed, pools ${setting}`, failures, mayFail: 0 }
    }

    /** Kills the spawner, and with it all commands under way. */
    async function killSpawner(): Promise<Hit> {
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      await pause(random(longestMs))
      process.kill((await spawnerOf(names)) ?? assert.fail('no spawner'), 'SIGKILL')
      churn.stop()
      const failures = await churn.ended
      const what = `spawner killed; ${describeFailures(failures)}`
      return { what, failures, mayFail: callers }
    }

    /** Kills the egress process. Rule changes wait for its successor. */
    async function killEgress(): Promise<Hit> {
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      await pause(random(longestMs))
      for (const pid of await egressesOf(names)) process.kill(pid, 'SIGKILL')
      churn.stop()
      const failures = await churn.ended
      return { what: `egress killed; ${describeFailures(failures)}`, failures, mayFail: 0 }
    }

    async function strikeRuntime(): Promise<Hit> {
      const target = targets[random(targets.length)] ?? assert.fail()
      const churn = startLifecycleChurn({ acknowledged, cloud, random })
      await pause(random(longestMs))
      const signal = AbortSignal.timeout(strikeLimitMs)
      const struck = await strike(target, names, { random, signal })
      churn.stop()
      const failures = await churn.ended
      const what = `${target} ${struck ? 'killed' : 'not met'}; ${describeFailures(failures)}`
      return { what, failures, mayFail: struck ? 1 : 0, strike: struck }
    }

    /** Waits until the API says what the node says, and the host has that and nothing else. */
    async function agreement(): Promise<Map<string, string>> {
      const states = await eventually(
        'the API and the node to agree',
        async () => ({ actual: await listed(), expected: await onNode() }),
        promisedMs,
      )
      const held = [...states.values()]
      const paused = held.filter((state) => state === 'paused').length
      await eventually(
        'the host to hold what belongs to sandboxes alone',
        async () => {
          const ready = (await cells(names.dataDir)).filter(({ phase }) => phase === 'ready').length
          const actual = await tracesOf(names)
          const kept = { paused, snapshots: (await listedSnapshots()).length }
          const running = held.length - paused + ready
          return { actual, expected: consistentTraces(actual, running, kept) }
        },
        tidyMs,
      )
      await eventually(
        'one egress process, and all that has names led to it',
        async () => ({
          actual: {
            processes: (await egressesOf(names)).length,
            led: await routedSandboxes(names),
          },
          expected: { processes: 1, led: await named(states) },
        }),
        promisedMs,
      )
      return states
    }

    /** Returns how many running sandboxes have name rules. */
    async function named(states: ReadonlyMap<string, string>): Promise<number> {
      const running = [...states].filter(([, state]) => state === 'running')
      const shown = await Promise.all(
        running.map(([id]) => cloud.platform('GET', `/sandboxes/${id}`)),
      )
      return shown.filter(({ json }) => Object(json).network?.allowOut).length
    }

    async function eventually<T>(
      what: string,
      look: () => Promise<{ readonly actual: T; readonly expected: T }>,
      timeoutMs: number,
    ): Promise<T> {
      const seen = await waitFor(
        what,
        async () => {
          const { actual, expected } = await look()
          return isDeepStrictEqual(actual, expected) && { actual }
        },
        { timeoutMs },
      ).catch(() => undefined)
      if (seen) return seen.actual
      const { actual, expected } = await look()
      assert.deepEqual(actual, expected)
      return actual
    }

    async function listed(): Promise<Map<string, string>> {
      const { json } = await cloud.platform('GET', '/v2/sandboxes?state=running,paused&limit=100')
      const all: { sandboxID: string; state: string }[] = Object(json)
      return sorted(all.map(({ sandboxID, state }) => [sandboxID, state]))
    }

    async function onNode(): Promise<Map<string, string>> {
      const owned = (await cells(names.dataDir)).flatMap(({ owner, phase = 'unreadable' }) =>
        owner === undefined ? [] : [[owner, phase] as const],
      )
      return sorted(owned)
    }

    async function listedSnapshots(): Promise<string[]> {
      const { json } = await cloud.platform('GET', '/snapshots?limit=100')
      const all: { snapshotID: string }[] = Object(json)
      return all.map(({ snapshotID }) => snapshotID)
    }

    /** Checks that acknowledged states hold, and resolves the outcome of unanswered requests. */
    function checkStates(states: ReadonlyMap<string, string>, hit: Hit): void {
      for (const [id, one] of sandboxes) {
        const state = states.get(id)
        // A sandbox that had been handed over by the time of the kill has died of it.
        const isVictim = hit.strike?.sandboxId === id && one.state === 'running'
        if (state === undefined && (one.mayBeGone || isVictim)) {
          sandboxes.delete(id)
          continue
        }
        assert.ok(state !== undefined, `${id} is lost: it was ${one.state}`)
        if (one.state !== 'unclear') assert.equal(state, one.state, id)
        one.state = state === 'paused' ? 'paused' : 'running'
        one.mayBeGone = false
      }
      const revived = [...acknowledged.killed].filter((id) => states.has(id))
      assert.deepEqual(revived, [], 'came back')
    }

    /** Checks that every sandbox continues from its counter. Some stay paused for another round. */
    async function checkCounters(states: ReadonlyMap<string, string>, isLast: boolean) {
      const awake = [...states].filter(
        ([, state]) => state === 'running' || isLast || random(3) > 0,
      )
      await Promise.all(awake.map(([id, state]) => checkCounter(id, state === 'paused')))
      const snapshots = new Set(await listedSnapshots())
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
      const { count: least = 0 } = sandboxes.get(id) ?? {}
      assert.ok(count >= least, `${id} went back from ${least} to ${count}`)
      sandboxes.set(id, { sandbox, count, state: 'running', mayBeGone: false })
    }

    async function kill(id: string): Promise<void> {
      assert.equal((await cloud.platform('DELETE', `/sandboxes/${id}`)).status, 204)
      sandboxes.delete(id)
      acknowledged.killed.add(id)
    }

    async function populate(): Promise<void> {
      const surplus = [...sandboxes.keys()].slice(fewest + 1)
      await Promise.all(surplus.map(kill))
      const missing = Math.max(fewest - sandboxes.size, 0)
      await Promise.all(Array.from({ length: missing }, create))
    }

    async function create(): Promise<void> {
      const sandbox = await cloud.createSandbox({ timeout: 3600, network: fewNames })
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
  const paused = [...states.values()].filter((state) => state === 'paused').length
  return `${states.size - paused} run, ${paused} paused`
}

function describeFailures(failures: readonly Failure[]): string {
  const lines = failures.map(({ what, sandboxId, answer }) => `${what} ${sandboxId}: ${answer}`)
  return lines.join('\n') || 'no request failed'
}
