/** Programs that use epoll over TCP see no stale events after a resume, a fork or a snapshot. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { epollSource } from './epoll-in-sandbox.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 100 }

suite('epoll over a pause on gvisor', () => {
  let installation: Installation

  before(async () => (installation = await install({ ATOLL_RUNTIME: 'gvisor' })))
  after(() => installation[Symbol.asyncDispose]())

  test('epoll reports no closed descriptor in a resumed sandbox, a fork or a copy from a snapshot', async () => {
    const { connection } = installation
    const sandbox = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    const server = await sandbox.commands.run('exec python3 -c "$SERVER"', {
      background: true,
      envs: { SERVER: epollSource, PORT: '8000' },
      timeoutMs: 0,
    })
    server.wait().catch(() => {})
    await waitFor('the server to listen', () => server.stdout === 'listening\n', polling)

    for (let round = 1; round <= 2; round += 1) {
      await request(sandbox, '/close')
      await sandbox.pause()
      await sandbox.connect()
      await assertNoStaleEvents(sandbox)
    }
    await request(sandbox, '/close')
    const [fork] = await sandbox.fork()
    assert.ok(fork instanceof Sandbox)
    const { snapshotId } = await sandbox.createSnapshot()
    const copy = await Sandbox.create(snapshotId, connection)
    for (const target of [sandbox, fork, copy]) await assertNoStaleEvents(target)
  })

  async function assertNoStaleEvents(sandbox: Sandbox): Promise<void> {
    const firstState = await request(sandbox)
    const secondState = await request(sandbox)
    assert.deepEqual(secondState.stale, [])
    assert.equal(secondState.exchanges, firstState.exchanges + 1)
    assert.ok(
      secondState.waits - firstState.waits < 20,
      `${secondState.waits - firstState.waits} waits for 3 events`,
    )
  }

  async function request(sandbox: Sandbox, path = '/'): Promise<State> {
    const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '8000' }
    const signal = AbortSignal.timeout(30_000)
    const reply = await fetch(`${installation.url}${path}`, { headers, signal })
    const body = await reply.text()
    assert.equal(reply.status, 200, body)
    return JSON.parse(body)
  }
})

interface State {
  readonly waits: number
  readonly exchanges: number
  readonly stale: readonly number[]
}
