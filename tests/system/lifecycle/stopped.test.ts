import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { envdHeaders, openProcess, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { readCounter, startCounter } from '../counter.ts'
import { cellOf, namesOf } from '../host-state.ts'

/** Shorter than the limit of the node for a command that waits for a sandbox. */
const requestLimitMs = 50_000

describe('a sandbox that is stopped by a signal', { concurrency: 1 }, () => {
  let cloud: HttpCloud
  let url: string

  before(async () => {
    cloud = await startCloud({
      ATOLL_RUNTIME: 'gvisor',
      ATOLL_READY_SANDBOXES: '0',
      ATOLL_BASE_DISK_SIZE_MB: '64',
      ATOLL_BASE_MEMORY_MB: '256',
    })
    url = cloud.installation.url
  })
  after(() => cloud?.[Symbol.asyncDispose]())

  test('stopped from outside: pause, snapshot and fork are refused with the reason, and a pause works after SIGCONT', async () => {
    const { sandbox, path, pid } = await createStoppedSandbox()
    for (const [request, body] of [
      ['pause', {}],
      ['snapshots', {}],
      ['fork', { count: 1 }],
    ] as const) {
      const { status, text } = await withinLimit(() =>
        cloud.platform('POST', `${path}/${request}`, body),
      )
      assert.equal(status, 400, `${request}: ${text}`)
      assert.match(text, /stopped by a signal \(SIGSTOP\)/)
    }
    process.kill(pid, 'SIGCONT')
    const count = await readCounter(url, sandbox)
    const pauseReply = await cloud.platform('POST', `${path}/pause`, {})
    assert.equal(pauseReply.status, 204, pauseReply.text)
    assert.equal((await cloud.platform('POST', `${path}/connect`, { timeout: 600 })).status, 201)
    assert.ok((await readCounter(url, sandbox)) > count)
    assert.equal((await cloud.platform('DELETE', path)).status, 204)
  })

  test('stopped from outside: a pause without memory succeeds', async () => {
    const { path } = await createStoppedSandbox()
    const { status, text } = await withinLimit(() =>
      cloud.platform('POST', `${path}/pause`, { memory: false }),
    )
    assert.equal(status, 204, text)
    assert.equal((await cloud.platform('DELETE', path)).status, 204)
  })

  test('stopped from outside: a kill succeeds', async () => {
    const { path } = await createStoppedSandbox()
    assert.equal((await withinLimit(() => cloud.platform('DELETE', path))).status, 204)
    assert.equal((await cloud.platform('GET', path)).status, 404)
  })

  test('stopped from outside during a pause: a kill succeeds', async () => {
    const { path, pid, pausing } = await createPausingSandbox()
    process.kill(pid, 'SIGSTOP')
    assert.equal((await withinLimit(() => cloud.platform('DELETE', path))).status, 204)
    // The pause may have been quicker than the signal.
    assert.ok([204, 404, 500].includes((await withinLimit(() => pausing)).status))
    assert.equal((await cloud.platform('GET', path)).status, 404)
  })

  test('stopped from inside: a pause succeeds, and the sandbox stays paused when envd does not answer a resume', async () => {
    const { sandbox, path } = await createCountingSandbox()
    const script = 'kill -STOP -1; for folder in /proc/[0-9]*; do kill -STOP ${folder#/proc/}; done'
    // envd may be stopped before it can answer this request.
    openProcess(url, envdHeaders(sandbox), shell(script), { user: 'root' })
      .then((stream) => stream.readRemaining())
      .catch(() => {})
    await waitFor('envd to be stopped', async () => !(await isUp(sandbox)))
    const pauseReply = await withinLimit(() => cloud.platform('POST', `${path}/pause`, {}))
    assert.equal(pauseReply.status, 204, pauseReply.text)
    const resumeReply = await cloud.platform('POST', `${path}/connect`, { timeout: 600 })
    assert.equal(resumeReply.status, 500, resumeReply.text)
    assert.equal(Object((await cloud.platform('GET', path)).json).state, 'paused')
    assert.equal((await withinLimit(() => cloud.platform('DELETE', path))).status, 204)
  })

  async function createCountingSandbox() {
    const sandbox = await cloud.createSandbox()
    await startCounter(url, sandbox)
    const path = `/sandboxes/${sandbox.sandboxID}`
    const { process: runtimeProcess } = await recordOf(sandbox)
    return { sandbox, path, pid: runtimeProcess.pid }
  }

  /** Tries again if the pause passes unseen, as on a busy machine. */
  async function createPausingSandbox() {
    for (let attempt = 1; attempt <= 10; attempt += 1) {
      const target = await createCountingSandbox()
      const pausing = cloud.platform('POST', `${target.path}/pause`, {})
      const phase = await waitFor(
        'the pause to begin',
        async () => {
          const current = await phaseOf(target.sandbox).catch(() => '')
          return ['copying', 'paused'].includes(current) && current
        },
        { timeoutMs: 60_000, intervalMs: 1 },
      )
      if (phase === 'copying') return { ...target, pausing }
      await pausing
      assert.equal((await cloud.platform('DELETE', target.path)).status, 204)
    }
    return assert.fail('no pause was seen while it was under way')
  }

  async function createStoppedSandbox() {
    const target = await createCountingSandbox()
    process.kill(target.pid, 'SIGSTOP')
    return target
  }

  async function phaseOf(sandbox: HttpSandbox): Promise<string> {
    return (await recordOf(sandbox)).phase
  }

  async function recordOf(
    sandbox: HttpSandbox,
  ): Promise<{ readonly phase: string; readonly process: { readonly pid: number } }> {
    const names = await namesOf(cloud.installation.dataDir)
    const cell = await cellOf(names, sandbox.sandboxID)
    return JSON.parse(await readFile(join(names.dataDir, 'cells', cell, 'cell.json'), 'utf8'))
  }

  async function isUp(sandbox: HttpSandbox): Promise<boolean> {
    const signal = AbortSignal.timeout(1000)
    return fetch(`${url}/health`, { headers: envdHeaders(sandbox), signal }).then(
      ({ ok }) => ok,
      () => false,
    )
  }
})

async function withinLimit<T>(request: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const result = await request()
  const tookMs = Math.round(performance.now() - startedAt)
  assert.ok(tookMs < requestLimitMs, `answered after ${tookMs} ms`)
  return result
}
