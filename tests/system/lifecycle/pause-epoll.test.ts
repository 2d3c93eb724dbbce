/** Programs that use epoll over TCP see no stale events after a resume, a fork or a snapshot. */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { epollSource } from './epoll-in-sandbox.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const patient = { intervalMs: 100 }

suite('epoll over a pause on gvisor', () => {
  let installation: Installation

  before(async () => (installation = await install({ ATOLL_RUNTIME: 'gvisor' })))
  after(() => installation[Symbol.asyncDispose]())

  test('epoll reports no descriptor that was closed before, in the sandbox and in its copies', async () => {
    const { connection } = installation
    const sandbox = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    const server = await sandbox.commands.run('exec python3 -c "$SERVER"', {
      background: true,
      envs: { SERVER: epollSource, PORT: '8000' },
      timeoutMs: 0,
    })
    server.wait().catch(() => {})
    await waitFor('the server to listen', () => server.stdout === 'listening\n', patient)

    for (let round = 1; round <= 2; round += 1) {
      await ask(sandbox, '/close')
      await sandbox.pause()
      await sandbox.connect()
      await seesLiveConnectionsAlone(sandbox)
    }
    await ask(sandbox, '/close')
    const [fork] = await sandbox.fork()
    assert.ok(fork instanceof Sandbox)
    const { snapshotId } = await sandbox.createSnapshot()
    const copy = await Sandbox.create(snapshotId, connection)
    for (const each of [sandbox, fork, copy]) await seesLiveConnectionsAlone(each)
  })

  async function seesLiveConnectionsAlone(sandbox: Sandbox): Promise<void> {
    const first = await ask(sandbox)
    const second = await ask(sandbox)
    assert.deepEqual(second.stale, [])
    assert.equal(second.exchanges, first.exchanges + 1)
    assert.ok(second.waits - first.waits < 20, `${second.waits - first.waits} waits for 3 events`)
  }

  async function ask(sandbox: Sandbox, path = '/'): Promise<State> {
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
