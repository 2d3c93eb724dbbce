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

/** Each round kills the server at a random moment, also while it starts. `ATOLL_TEST_ROUNDS=50` runs more rounds. */
const rounds = roundsOr(3)
/** Longest delay before a kill. */
const maxDelayMs = 3_000
/** Records and host agree within five seconds of the server's first answer, on a machine that does nothing else. */
const agreementLimitMs = 60_000
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
          await pause(random(maxDelayMs))
          churn.abort()
          await installation.crash()
          assert.deepEqual(await churn.failures, [])
          await checkRecords()

          if (random(3) === 0) await crashWhileStarting()
          await installation.start()
          const readyAt = performance.now()
          const running = await waitForAgreement()
          const elapsedMs = Math.round(performance.now() - readyAt)
          t.diagnostic(`${running.size} run; agreed after ${elapsedMs} ms`)
          await checkAlive(running)
          resolveUnanswered(running)
        })
      }

      test('every record of every round is running or ended', async () => {
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
        await pause(random(maxDelayMs))
        await installation.crash()
        await starting
      }

      async function listSandboxIds(): Promise<Set<string>> {
        const sandboxes = await Array.fromAsync(client.listSandboxes())
        return new Set(sandboxes.map(({ sandboxID }) => sandboxID))
      }

      /** Waits until the host has exactly the resources of the listed sandboxes. Returns their IDs. */
      async function waitForAgreement(): Promise<Set<string>> {
        const readState = async () => {
          const running = await listSandboxIds()
          const traces = await tracesOf(names)
          return { running, traces, expected: consistentTraces(traces, running.size) }
        }
        const agreedIds = await waitFor(
          'records and host to agree',
          async () => {
            const state = await readState()
            return isDeepStrictEqual(state.traces, state.expected) && state.running
          },
          { timeoutMs: agreementLimitMs },
        ).catch(() => undefined)
        if (agreedIds) return agreedIds
        const { traces, expected, running } = await readState()
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
      function resolveUnanswered(running: ReadonlySet<string>): void {
        assert.deepEqual(acknowledged.running.difference(running), new Set(), 'lost by the restart')
        assert.deepEqual(acknowledged.killed.intersection(running), new Set(), 'came back')
        for (const id of acknowledged.doubtful.difference(running)) acknowledged.killed.add(id)
        acknowledged.doubtful.clear()
        for (const id of running) acknowledged.running.add(id)
      }
    },
  )
}
