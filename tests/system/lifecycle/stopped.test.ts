import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { envdHeaders, openProcess, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox } from '../http-cloud.ts'
import { readCounter, startCounter } from '../counter.ts'
import { cellOf, namesOf } from '../host-state.ts'

/** Less than a command that waits for a sandbox is given. */
const boundMs = 50_000

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

  test('from outside: a pause is refused with the reason, and works once it is continued', async () => {
    const { sandbox, path, pid } = await stopped()
    for (const [request, body] of [
      ['pause', {}],
      ['snapshots', {}],
      ['fork', { count: 1 }],
    ] as const) {
      const { status, text } = await within(() =>
        cloud.platform('POST', `${path}/${request}`, body),
      )
      assert.equal(status, 400, `${request}: ${text}`)
      assert.match(text, /stopped by a signal \(SIGSTOP\)/)
    }
    process.kill(pid, 'SIGCONT')
    const count = await readCounter(url, sandbox)
    const paused = await cloud.platform('POST', `${path}/pause`, {})
    assert.equal(paused.status, 204, paused.text)
    assert.equal((await cloud.platform('POST', `${path}/connect`, { timeout: 600 })).status, 201)
    assert.ok((await readCounter(url, sandbox)) > count)
    assert.equal((await cloud.platform('DELETE', path)).status, 204)
  })

  test('from outside: it is paused without memory', async () => {
    const { path } = await stopped()
    const { status, text } = await within(() =>
      cloud.platform('POST', `${path}/pause`, { memory: false }),
    )
    assert.equal(status, 204, text)
    assert.equal((await cloud.platform('DELETE', path)).status, 204)
  })

  test('from outside: it is killed', async () => {
    const { path } = await stopped()
    assert.equal((await within(() => cloud.platform('DELETE', path))).status, 204)
    assert.equal((await cloud.platform('GET', path)).status, 404)
  })

  test('from outside while it is being paused: it is killed', async () => {
    const { sandbox, path, pid } = await counting()
    const pausing = cloud.platform('POST', `${path}/pause`, {})
    await waitFor('the pause to begin', async () => (await phaseOf(sandbox)) === 'copying', {
      timeoutMs: 60_000,
      intervalMs: 1,
    })
    process.kill(pid, 'SIGSTOP')
    assert.equal((await within(() => cloud.platform('DELETE', path))).status, 204)
    // The pause may have been quicker than the signal.
    assert.ok([204, 404, 500].includes((await within(() => pausing)).status))
    assert.equal((await cloud.platform('GET', path)).status, 404)
  })

  test('from inside: it is paused, and a resume that envd does not answer leaves it paused', async () => {
    const { sandbox, path } = await counting()
    const script = 'kill -STOP -1; for folder in /proc/[0-9]*; do kill -STOP ${folder#/proc/}; done'
    // envd may be stopped before it can answer this request.
    openProcess(url, envdHeaders(sandbox), shell(script), { user: 'root' })
      .then((stream) => stream.rest())
      .catch(() => {})
    await waitFor('envd to be stopped', async () => !(await isUp(sandbox)))
    const paused = await within(() => cloud.platform('POST', `${path}/pause`, {}))
    assert.equal(paused.status, 204, paused.text)
    const resumed = await cloud.platform('POST', `${path}/connect`, { timeout: 600 })
    assert.equal(resumed.status, 500, resumed.text)
    assert.equal(Object((await cloud.platform('GET', path)).json).state, 'paused')
    assert.equal((await within(() => cloud.platform('DELETE', path))).status, 204)
  })

  async function counting() {
    const sandbox = await cloud.createSandbox()
    await startCounter(url, sandbox)
    const path = `/sandboxes/${sandbox.sandboxID}`
    const { process: own } = await recordOf(sandbox)
    return { sandbox, path, pid: own.pid }
  }

  async function stopped() {
    const made = await counting()
    process.kill(made.pid, 'SIGSTOP')
    return made
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

async function within<T>(request: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const result = await request()
  const tookMs = Math.round(performance.now() - began)
  assert.ok(tookMs < boundMs, `answered after ${tookMs} ms`)
  return result
}
