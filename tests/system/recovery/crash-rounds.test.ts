import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { createPlatformClient } from '@atoll/client/platform'
import type { PlatformClient } from '@atoll/client/platform'
import { waitFor } from '@atoll/kit/wait'
import { startChurn } from './churn.ts'
import { envdPort } from '../http-cloud.ts'
import { roundsOr, seed } from '../config.ts'
import { namesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { randomFrom } from '../mutations.ts'
import { readRecordFile } from './record-file.ts'
import type { SandboxRecord } from './record-file.ts'
import { runtimes } from '../shell.ts'
import { consistentTraces, tracesOf } from '../traces.ts'

/** The server is killed at any moment, also while it starts; `ATOLL_TEST_ROUNDS=50` tries it more often. */
const rounds = roundsOr(3)
/** The longest that a server is up before it is killed. */
const longestMs = 3_000
/** Records and host agree within five seconds of the server's first answer, on a machine that does nothing else. */
const promisedMs = 60_000
/** Metadata pairs of each sandbox. */
const pairs = 2

for (const runtime of runtimes) {
  describe(
    `kill -9 under creates and kills, ${runtime}, ATOLL_TEST_SEED=${seed}`,
    {
      concurrency: 1,
      timeout: 300_000 + rounds * 60_000,
    },
    () => {
      const random = randomFrom(seed)
      const acknowledged = {
        running: new Set<string>(),
        doubtful: new Set<string>(),
        killed: new Set<string>(),
      }
      let installation: Installation
      let names: Names
      let client: PlatformClient

      before(async () => {
        // No slots or cells in advance: they would look like leftovers.
        installation = await install({
          ATOLL_RUNTIME: runtime,
          ATOLL_READY_SLOTS: '0',
          ATOLL_READY_SANDBOXES: '0',
          ATOLL_POOL_MEMORY_MB: '0',
          ATOLL_BASE_DISK_SIZE_MB: '64',
          ATOLL_BASE_MEMORY_MB: '256',
        })
        names = await namesOf(installation.dataDir)
        client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
      })
      after(() => installation?.[Symbol.asyncDispose]())

      for (let round = 1; round <= rounds; round += 1) {
        test(`round ${round} of ${rounds}`, async (t) => {
          const metadata = { round: String(round), runtime }
          const churn = startChurn(acknowledged, { client, random, metadata })
          // There is no state to wait for: the kill is to come at any moment.
          await pause(random(longestMs))
          churn.giveUp()
          await installation.crash()
          assert.deepEqual(await churn.ended, [])
          await checkRecords()

          if (random(3) === 0) await crashWhileStarting()
          await installation.start()
          const ready = performance.now()
          const running = await agreement()
          const agreedMs = Math.round(performance.now() - ready)
          t.diagnostic(`${running.size} run; agreed after ${agreedMs} ms`)
          await checkAlive(running)
          settle(running)
        })
      }

      test('no record of any round is left unfinished', async () => {
        await installation.interrupt()
        const records = await checkRecords()
        const unfinished = records.filter(({ state }) => !['running', 'ended'].includes(state))
        assert.deepEqual(unfinished, [])
      })

      async function checkRecords(): Promise<readonly SandboxRecord[]> {
        const { records, damage } = await readRecordFile(installation.dataDir, pairs)
        assert.deepEqual(damage, [])
        const idsIn = (state: string) =>
          new Set(records.filter((record) => record.state === state).map(({ id }) => id))
        assert.deepEqual(acknowledged.running.difference(idsIn('running')), new Set(), 'lost')
        assert.deepEqual(acknowledged.killed.difference(idsIn('ended')), new Set(), 'came back')
        return records
      }

      async function crashWhileStarting(): Promise<void> {
        const starting = installation.start().catch(() => {})
        await pause(random(longestMs))
        await installation.crash()
        await starting
      }

      async function listed(): Promise<Set<string>> {
        const all = await Array.fromAsync(client.listSandboxes())
        return new Set(all.map(({ sandboxID }) => sandboxID))
      }

      /** Waits until the host has what the records say, no more and no less. */
      async function agreement(): Promise<Set<string>> {
        const look = async () => {
          const running = await listed()
          const traces = await tracesOf(names)
          return { running, traces, expected: consistentTraces(traces, running.size) }
        }
        const agreed = await waitFor(
          'records and host to agree',
          async () => {
            const seen = await look()
            return isDeepStrictEqual(seen.traces, seen.expected) && seen.running
          },
          { timeoutMs: promisedMs },
        ).catch(() => undefined)
        if (agreed) return agreed
        const { traces, expected, running } = await look()
        assert.deepEqual(traces, expected)
        return running
      }

      async function checkAlive(running: ReadonlySet<string>): Promise<void> {
        const replies = [...running].map(async (id) => {
          const headers = { 'svc-sandbox-id': id, 'svc-sandbox-port': String(envdPort) }
          return (await fetch(`${installation.url}/health`, { headers })).status
        })
        assert.deepEqual(await Promise.all(replies), Array(running.size).fill(204))
      }

      /** Resolves the outcome of requests that the crash left unanswered. */
      function settle(running: ReadonlySet<string>): void {
        assert.deepEqual(acknowledged.running.difference(running), new Set(), 'lost by the restart')
        assert.deepEqual(acknowledged.killed.intersection(running), new Set(), 'came back')
        for (const id of acknowledged.doubtful.difference(running)) acknowledged.killed.add(id)
        acknowledged.doubtful.clear()
        for (const id of running) acknowledged.running.add(id)
      }
    },
  )
}
