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

/** How long anything may take on a busy machine. */
const patienceMs = 120_000

describe('two requests on one sandbox at a time', { concurrency: 1 }, () => {
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

  test('a kill during a pause: both end, and nothing of it is left', async () => {
    const { sandboxID: id } = await cloud.createSandbox()
    const pausing = pause(id)
    await until(id, 'copying')
    assert.equal((await kill(id)).status, 204)
    assert.equal((await pausing).status, 404)
    await assertLeft({})
  })

  test('a pause during a kill finds nothing to pause', async () => {
    const { sandboxID: id } = await cloud.createSandbox()
    const [killed, paused] = await Promise.all([kill(id), pause(id)])
    assert.deepEqual([killed.status, paused.status], [204, 404])
    await assertLeft({})
  })

  test('during a pause another is part of it, a fork is refused, and a connect waits', async () => {
    const { id, sandbox } = await open()
    const seen = await readCounter(url, sandbox)
    const pausing = pause(id)
    await until(id, 'copying')
    const replies = await Promise.all([pausing, pause(id), fork(id), connect(id)])
    assert.deepEqual(
      replies.map(({ status }) => status),
      [204, 204, 409, 201],
    )
    assert.ok((await readCounter(url, sandbox)) > seen)
    await assertLeft({ [id]: 'running' })
    await kill(id)
  })

  test('during a fork a pause is refused while the copy is made, and done while it starts', async () => {
    const { id, sandbox } = await open()
    const seen = await readCounter(url, sandbox)
    const forking = fork(id)
    await until(id, 'copying')
    assert.equal((await pause(id)).status, 409)
    const isStarting = async () => {
      const all = await cells(names.dataDir)
      return all.some(({ owner }) => owner !== id) && phaseOf(all, id) === 'running'
    }
    await waitFor('a copy to be started', isStarting, { timeoutMs: patienceMs })
    assert.equal((await pause(id)).status, 204)
    const [copy] = madeBy(await forking)
    assert.ok(copy)
    await assertLeft({ [id]: 'paused', [copy.sandboxID]: 'running' })
    assert.ok((await readCounter(url, copy)) > seen)
    await Promise.all([kill(id), kill(copy.sandboxID)])
  })

  test('two connects at a time are one start', async () => {
    const { id, sandbox } = await open()
    const seen = await readCounter(url, sandbox)
    assert.equal((await pause(id)).status, 204)
    const replies = await Promise.all([connect(id), connect(id)])
    assert.deepEqual(
      replies.map(({ status }) => status),
      [201, 201],
    )
    const first = await processesOf(names, id)
    assert.equal((await connect(id)).status, 200)
    assert.deepEqual(await processesOf(names, id), first)
    assert.ok((await readCounter(url, sandbox)) > seen)
    await assertLeft({ [id]: 'running' })
    await kill(id)
  })

  test('a kill during a resume: both end, and nothing of it is left', async () => {
    const { sandboxID: id } = await cloud.createSandbox()
    assert.equal((await pause(id)).status, 204)
    const connecting = connect(id)
    await until(id, 'resuming')
    assert.equal((await kill(id)).status, 204)
    const { status } = await connecting
    // Being killed, or killed already.
    assert.ok([404, 409].includes(status), String(status))
    await assertLeft({})
  })

  test('those whose time is up while they are copied end or are paused afterwards', async () => {
    const ids = await Promise.all(
      [false, true].map(async (autoPause) => {
        const { sandboxID } = await cloud.createSandbox({ autoPause })
        return sandboxID
      }),
    )
    const copies = await Promise.all(ids.map(copyAtTheEnd))
    const [, paused = ''] = ids
    const snapshots = copies.filter(({ status }) => status === 201)
    // A slow machine may reach the timeout before the copy begins.
    for (const { status, text } of copies) assert.ok([201, 404, 409].includes(status), text)
    await assertLeft({ [paused]: 'paused' }, snapshots.length)
    assert.equal((await connect(paused)).status, 201)
    assert.equal((await kill(paused)).status, 204)
    for (const { json } of snapshots) {
      const path = `/templates/${encodeURIComponent(Object(json).snapshotID)}`
      assert.equal((await cloud.platform('DELETE', path)).status, 204)
    }
    await assertLeft({})
  })

  /** The copy takes longer than what is left of its time. */
  async function copyAtTheEnd(id: string): Promise<Reply> {
    const path = `/sandboxes/${id}`
    assert.equal((await cloud.platform('POST', `${path}/timeout`, { timeout: 1 })).status, 204)
    const endAt = Date.now() + 1_000
    await waitFor('the last moment', () => Date.now() > endAt - 100)
    return cloud.platform('POST', `${path}/snapshots`, {})
  }

  async function open() {
    const sandbox = await cloud.createSandbox()
    await startCounter(url, sandbox)
    return { id: sandbox.sandboxID, sandbox }
  }

  const pause = (id: string) => cloud.platform('POST', `/sandboxes/${id}/pause`, {})
  const fork = (id: string) => cloud.platform('POST', `/sandboxes/${id}/fork`, { timeout: 600 })
  const kill = (id: string) => cloud.platform('DELETE', `/sandboxes/${id}`)
  const connect = (id: string) =>
    cloud.platform('POST', `/sandboxes/${id}/connect`, { timeout: 600 })

  async function until(id: string, phase: string): Promise<void> {
    await waitFor(
      `${id} to be ${phase}`,
      async () => phaseOf(await cells(names.dataDir), id) === phase,
      { intervalMs: 1, timeoutMs: patienceMs },
    )
  }

  /** Waits until these sandboxes are there, and the host has what belongs to them and no more. */
  async function assertLeft(expected: Record<string, string>, snapshots = 0): Promise<void> {
    const states = Object.values(expected)
    const paused = states.filter((state) => state === 'paused').length
    const look = async () => {
      const { json } = await cloud.platform('GET', '/v2/sandboxes?state=running,paused')
      const all: { sandboxID: string; state: string }[] = Object(json)
      const listed = Object.fromEntries(all.map(({ sandboxID, state }) => [sandboxID, state]))
      const traces = await tracesOf(names)
      const wanted = consistentTraces(traces, states.length - paused, { paused, snapshots })
      return { actual: { listed, traces }, expected: { listed: expected, traces: wanted } }
    }
    const isAgreed = async () => {
      const { actual, expected: wanted } = await look()
      return isDeepStrictEqual(actual, wanted)
    }
    await waitFor('the host to agree', isAgreed, { timeoutMs: patienceMs }).catch(() => {})
    const last = await look()
    assert.deepEqual(last.actual, last.expected)
  }
})

function phaseOf(all: Awaited<ReturnType<typeof cells>>, id: string): string | undefined {
  return all.find(({ owner }) => owner === id)?.phase
}

function madeBy({ status, text, json }: Reply): readonly HttpSandbox[] {
  assert.equal(status, 201, text)
  const items: { sandbox?: HttpSandbox }[] = Object(json)
  return items.flatMap(({ sandbox }) => sandbox ?? [])
}
