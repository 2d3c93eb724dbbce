import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { waitFor } from '@atoll/kit/wait'
import { startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { readCounter, startCounter } from '../counter.ts'
import { cells, namesOf, processesOf } from '../host-state.ts'
import type { Names } from '../host-state.ts'
import { consistentTraces, tracesOf } from '../traces.ts'
import type { Reply } from '../wire.ts'

/** Limit of every wait, also on a busy machine. */
const waitLimitMs = 120_000

describe('concurrent requests on one sandbox', { concurrency: 1 }, () => {
  let cloud: HttpCloud
  let names: Names
  let url: string

  before(async () => {
    cloud = await startCloud({
      ATOLL_RUNTIME: 'gvisor',
      ATOLL_READY_SLOTS: '0',
      ATOLL_READY_SANDBOXES: '0',
      ATOLL_BASE_DISK_SIZE_MB: '64',
      ATOLL_BASE_MEMORY_MB: '256',
    })
    url = cloud.installation.url
    names = await namesOf(cloud.installation.dataDir)
  })
  after(() => cloud?.[Symbol.asyncDispose]())

  test('a kill during a pause ends both requests and removes the sandbox', async () => {
    const { sandboxID: id } = await cloud.createSandbox()
    const pausing = pause(id)
    await waitForPhase(id, 'copying')
    assert.equal((await kill(id)).status, 204)
    // 204 if the kill arrived when the pause was final.
    assert.ok([404, 204].includes((await pausing).status))
    await assertSandboxes({})
  })

  test('a pause during a kill does not find the sandbox', async () => {
    const { sandboxID: id } = await cloud.createSandbox()
    const [killReply, pauseReply] = await Promise.all([kill(id), pause(id)])
    assert.deepEqual([killReply.status, pauseReply.status], [204, 404])
    await assertSandboxes({})
  })

  test('during a pause, a second pause joins the first, a fork is refused, and a connect waits', async () => {
    const { id, sandbox } = await createCountingSandbox()
    const countBefore = await readCounter(url, sandbox)
    const pausing = pause(id)
    await waitForPhase(id, 'copying')
    const replies = await Promise.all([pausing, pause(id), fork(id), connect(id)])
    const [first, second, ...others] = replies.map(({ status }) => status)
    assert.deepEqual([first, ...others], [204, 409, 201])
    // 409 if the second arrived when the first was final.
    assert.ok(second === 204 || second === 409, `status ${second}`)
    assert.ok((await readCounter(url, sandbox)) > countBefore)
    await assertSandboxes({ [id]: 'running' })
    await kill(id)
  })

  test('during a fork, a pause is refused while the copy is made, and accepted while the copy starts', async () => {
    const { id, sandbox } = await createCountingSandbox()
    const countBefore = await readCounter(url, sandbox)
    const forking = fork(id)
    await waitForPhase(id, 'copying')
    const early = (await pause(id)).status
    // 204 if the pause arrived when the copy was made.
    if (early !== 204) {
      assert.equal(early, 409)
      const isStarting = async () => {
        const allCells = await cells(names.dataDir)
        return allCells.some(({ owner }) => owner !== id) && phaseOf(allCells, id) === 'running'
      }
      await waitFor('a copy to be started', isStarting, { timeoutMs: waitLimitMs })
      assert.equal((await pause(id)).status, 204)
    }
    const [copy] = forksOf(await forking)
    assert.ok(copy)
    await assertSandboxes({ [id]: 'paused', [copy.sandboxID]: 'running' })
    assert.ok((await readCounter(url, copy)) > countBefore)
    await Promise.all([kill(id), kill(copy.sandboxID)])
  })

  test('two concurrent connects resume a sandbox once', async () => {
    const { id, sandbox } = await createCountingSandbox()
    const countBefore = await readCounter(url, sandbox)
    assert.equal((await pause(id)).status, 204)
    const replies = await Promise.all([connect(id), connect(id)])
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201],
    )
    const pidsBefore = await processesOf(names, id)
    assert.equal((await connect(id)).status, 200)
    assert.deepEqual(await processesOf(names, id), pidsBefore)
    assert.ok((await readCounter(url, sandbox)) > countBefore)
    await assertSandboxes({ [id]: 'running' })
    await kill(id)
  })

  test('a kill during a resume ends both requests and removes the sandbox', async () => {
    const { sandboxID: id } = await cloud.createSandbox()
    assert.equal((await pause(id)).status, 204)
    const connecting = connect(id)
    await waitForPhase(id, 'resuming')
    assert.equal((await kill(id)).status, 204)
    const { status } = await connecting
    // 409 while the kill runs, 404 after it.
    assert.ok([404, 409].includes(status), String(status))
    await assertSandboxes({})
  })

  test('sandboxes that reach their timeout during a snapshot end or pause after the snapshot', async () => {
    const ids = await Promise.all(
      [false, true].map(async (autoPause) => {
        const { sandboxID } = await cloud.createSandbox({ autoPause })
        return sandboxID
      }),
    )
    const replies = await Promise.all(ids.map(snapshotAtTimeout))
    const [, autoPausedId = ''] = ids
    const snapshots = replies.filter(({ status }) => status === 201)
    // A slow machine may reach the timeout before the copy begins.
    for (const { status, text } of replies) assert.ok([201, 404, 409].includes(status), text)
    await assertSandboxes({ [autoPausedId]: 'paused' }, snapshots.length)
    assert.equal((await connect(autoPausedId)).status, 201)
    assert.equal((await kill(autoPausedId)).status, 204)
    for (const { json } of snapshots) {
      const path = `/templates/${encodeURIComponent(Object(json).snapshotID)}`
      assert.equal((await cloud.platform('DELETE', path)).status, 204)
    }
    await assertSandboxes({})
  })

  /** Starts a snapshot just before the timeout of the sandbox. */
  async function snapshotAtTimeout(id: string): Promise<Reply> {
    const path = `/sandboxes/${id}`
    assert.equal((await cloud.platform('POST', `${path}/timeout`, { timeout: 1 })).status, 204)
    const endAt = Date.now() + 1_000
    await waitFor('the moment before the timeout', () => Date.now() > endAt - 100)
    return cloud.platform('POST', `${path}/snapshots`, {})
  }

  async function createCountingSandbox() {
    const sandbox = await cloud.createSandbox()
    await startCounter(url, sandbox)
    return { id: sandbox.sandboxID, sandbox }
  }

  const pause = (id: string) => cloud.platform('POST', `/sandboxes/${id}/pause`, {})
  const fork = (id: string) => cloud.platform('POST', `/sandboxes/${id}/fork`, { timeout: 600 })
  const kill = (id: string) => cloud.platform('DELETE', `/sandboxes/${id}`)
  const connect = (id: string) =>
    cloud.platform('POST', `/sandboxes/${id}/connect`, { timeout: 600 })

  async function waitForPhase(id: string, phase: string): Promise<void> {
    await waitFor(
      `${id} to be ${phase}`,
      async () => phaseOf(await cells(names.dataDir), id) === phase,
      { intervalMs: 1, timeoutMs: waitLimitMs },
    )
  }

  /** Waits until exactly these sandboxes are listed, and the host has only their resources. */
  async function assertSandboxes(expected: Record<string, string>, snapshots = 0): Promise<void> {
    const states = Object.values(expected)
    const pausedCount = states.filter((state) => state === 'paused').length
    const readState = async () => {
      const { json } = await cloud.platform('GET', '/v2/sandboxes?state=running,paused')
      const sandboxes: { sandboxID: string; state: string }[] = Object(json)
      const listed = Object.fromEntries(sandboxes.map(({ sandboxID, state }) => [sandboxID, state]))
      const traces = await tracesOf(names)
      const expectedTraces = consistentTraces(traces, states.length - pausedCount, {
        paused: pausedCount,
        snapshots,
      })
      return { actual: { listed, traces }, expected: { listed: expected, traces: expectedTraces } }
    }
    const isExpected = async () => {
      const { actual, expected: expectedState } = await readState()
      return isDeepStrictEqual(actual, expectedState)
    }
    await waitFor('the expected sandboxes and host resources', isExpected, {
      timeoutMs: waitLimitMs,
    }).catch(() => {})
    const lastState = await readState()
    assert.deepEqual(lastState.actual, lastState.expected)
  }
})

function phaseOf(allCells: Awaited<ReturnType<typeof cells>>, id: string): string | undefined {
  return allCells.find(({ owner }) => owner === id)?.phase
}

function forksOf({ status, text, json }: Reply): readonly HttpSandbox[] {
  assert.equal(status, 201, text)
  const items: { sandbox?: HttpSandbox }[] = Object(json)
  return items.flatMap(({ sandbox }) => sandbox ?? [])
}
