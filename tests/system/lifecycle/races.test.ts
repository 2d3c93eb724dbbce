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
const maxAttempts = 10

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
    const { id, reply: pausing } = await untilSeen('copying', async () => {
      const { sandboxID } = await cloud.createSandbox()
      return { id: sandboxID, reply: pause(sandboxID) }
    })
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
    const { id, sandbox, countBefore, reply } = await untilSeen('copying', async () => {
      const target = await createCountingSandbox()
      return { ...target, reply: pause(target.id) }
    })
    const replies = await Promise.all([reply, pause(id), fork(id), connect(id)])
    const [first, second, ...others] = replies.map(({ status }) => status)
    assert.deepEqual([first, ...others], [204, 409, 201])
    // 409 if the second arrived when the first was final.
    assert.ok(second === 204 || second === 409, `status ${second}`)
    assert.ok((await readCounter(url, sandbox)) > countBefore)
    await assertSandboxes({ [id]: 'running' })
    await kill(id)
  })

  test('during a fork, a pause is refused while the copy is made, and accepted while the copy starts', async () => {
    const {
      id,
      countBefore,
      reply: forking,
    } = await untilSeen('copying', async () => {
      const target = await createCountingSandbox()
      return { ...target, reply: fork(target.id), isFork: true }
    })
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
    const { id, sandbox, countBefore } = await createCountingSandbox()
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
    const { id, reply: connecting } = await untilSeen('resuming', async () => {
      const { sandboxID } = await cloud.createSandbox()
      assert.equal((await pause(sandboxID)).status, 204)
      return { id: sandboxID, reply: connect(sandboxID) }
    })
    assert.equal((await kill(id)).status, 204)
    const { status } = await connecting
    // 409 while the kill runs, 404 after it.
    assert.ok([404, 409].includes(status), String(status))
    await assertSandboxes({})
  })

  for (const autoPause of [false, true]) {
    const end = autoPause ? 'pauses' : 'ends'
    test(`a sandbox that reaches its timeout during a snapshot ${end} after the snapshot`, async () => {
      const { id, snapshotId } = await snapshotAtTimeout(autoPause)
      await assertSandboxes(autoPause ? { [id]: 'paused' } : {}, 1)
      const path = `/templates/${encodeURIComponent(snapshotId)}`
      assert.equal((await cloud.platform('DELETE', path)).status, 204)
      if (autoPause) {
        assert.equal((await connect(id)).status, 201)
        assert.equal((await kill(id)).status, 204)
      }
      await assertSandboxes({})
    })
  }

  /**
   * Starts a snapshot shortly before the timeout of a new sandbox. A slow machine may reach the timeout before the copy
   * begins, so the next attempt starts the snapshot earlier.
   */
  async function snapshotAtTimeout(autoPause: boolean) {
    for (const leadMs of [100, 200, 400, 800, 1600]) {
      const { sandboxID: id } = await cloud.createSandbox({ autoPause })
      const path = `/sandboxes/${id}`
      const timeout = Math.ceil((leadMs + 500) / 1000)
      assert.equal((await cloud.platform('POST', `${path}/timeout`, { timeout })).status, 204)
      const endAt = Date.now() + timeout * 1000
      await waitFor('the moment before the timeout', () => Date.now() > endAt - leadMs)
      const { status, text, json } = await cloud.platform('POST', `${path}/snapshots`, {})
      if (status === 201) return { id, snapshotId: String(Object(json).snapshotID) }
      assert.ok([404, 409].includes(status), text)
      await kill(id)
    }
    return assert.fail('every attempt reached the timeout before its snapshot began')
  }

  async function createCountingSandbox() {
    const sandbox = await cloud.createSandbox()
    await startCounter(url, sandbox)
    return { id: sandbox.sandboxID, sandbox, countBefore: await readCounter(url, sandbox) }
  }

  const pause = (id: string) => cloud.platform('POST', `/sandboxes/${id}/pause`, {})
  const fork = (id: string) => cloud.platform('POST', `/sandboxes/${id}/fork`, { timeout: 600 })
  const kill = (id: string) => cloud.platform('DELETE', `/sandboxes/${id}`)
  const connect = (id: string) =>
    cloud.platform('POST', `/sandboxes/${id}/connect`, { timeout: 600 })

  /** Repeats an attempt until the sandbox is seen in the phase: on a busy machine, the phase may pass unseen. */
  async function untilSeen<
    T extends { readonly id: string; readonly reply: Promise<Reply>; readonly isFork?: boolean },
  >(phase: string, attempt: () => Promise<T>): Promise<T> {
    for (let number = 1; number <= maxAttempts; number += 1) {
      const started = await attempt()
      let isAnswered = false
      void started.reply.finally(() => (isAnswered = true))
      const outcome = await waitFor(
        `${started.id} to be ${phase}`,
        async () => {
          if (phaseOf(await cells(names.dataDir), started.id) === phase) return 'seen'
          return isAnswered && 'missed'
        },
        { intervalMs: 1, timeoutMs: waitLimitMs },
      )
      if (outcome === 'seen') return started
      const copies = started.isFork ? forksOf(await started.reply) : []
      await started.reply
      await Promise.all([started.id, ...copies.map(({ sandboxID }) => sandboxID)].map(kill))
      await assertSandboxes({})
    }
    return assert.fail(`no sandbox was seen ${phase} in ${maxAttempts} attempts`)
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
