/** Restarts of the server while some sandboxes run and others are paused. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 100 }
const countPerState = 10

/** A sandbox with a secret in the memory of a shell. */
interface SecretSandbox {
  readonly sandbox: Sandbox
  readonly pid: number
  readonly secret: string
}

suite('a restart of the server on gvisor', () => {
  let installation: Installation
  let connection: Installation['connection']

  before(async () => {
    installation = await install({ ATOLL_RUNTIME: 'gvisor', ATOLL_BASE_MEMORY_MB: '256' })
    connection = installation.connection
  })
  after(() => installation[Symbol.asyncDispose]())

  test(`finds ${countPerState} running and ${countPerState} paused sandboxes with their memory`, async () => {
    const paused = await Promise.all(Array.from({ length: countPerState }, createSandbox))
    await Promise.all(paused.map(({ sandbox }) => sandbox.pause()))
    const running = await Promise.all(Array.from({ length: countPerState }, createSandbox))
    const original = running[0] ?? assert.fail('none runs')
    const { snapshotId } = await original.sandbox.createSnapshot()
    const expected = new Map([
      ...paused.map(({ sandbox }) => [sandbox.sandboxId, 'paused'] as const),
      ...running.map(({ sandbox }) => [sandbox.sandboxId, 'running'] as const),
    ])

    assert.equal(await installation.interrupt(), 0)
    await installation.start()
    assert.deepEqual(await states(), expected)
    await installation.crash()
    await installation.start()
    assert.deepEqual(await states(), expected)

    const allSandboxes = [...running, ...paused]
    await Promise.all(allSandboxes.map(({ sandbox }) => sandbox.connect({ timeoutMs: 600_000 })))
    const secrets = allSandboxes.map(({ sandbox, pid }) => readSecret(sandbox, pid))
    assert.deepEqual(
      await Promise.all(secrets),
      allSandboxes.map(({ secret }) => secret),
    )
    const outputs = await Promise.all(
      allSandboxes.map(({ sandbox }) => sandbox.commands.run('hostname')),
    )
    assert.deepEqual(
      outputs.map(({ stdout }) => stdout.trim()),
      allSandboxes.map(({ sandbox }) => sandbox.sandboxId),
    )
    assert.deepEqual(new Set((await states()).values()), new Set(['running']))
    await original.sandbox.kill()
    const copy = await Sandbox.create(snapshotId, connection)
    assert.equal(await readSecret(copy, original.pid), original.secret)
  })

  async function createSandbox(): Promise<SecretSandbox> {
    const sandbox = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
    const command = 'read -r word; echo ready; while read -r _; do echo "$word"; done'
    const options = { background: true, stdin: true, timeoutMs: 0 } as const
    const shell = await sandbox.commands.run(command, options)
    shell.wait().catch(() => {})
    const secret = randomUUID()
    await shell.sendStdin(`${secret}\n`)
    await waitFor('the shell to read the secret', () => shell.stdout === 'ready\n', polling)
    return { sandbox, pid: shell.pid, secret }
  }

  async function readSecret(sandbox: Sandbox, pid: number): Promise<string> {
    const shell = await sandbox.commands.connect(pid, { timeoutMs: 0 })
    await shell.sendStdin('\n')
    await waitFor('an answer of the shell', () => shell.stdout.endsWith('\n'), polling)
    await shell.disconnect()
    return shell.stdout.trim()
  }

  async function states(): Promise<Map<string, string>> {
    const sandboxes = await Sandbox.list({ ...connection, limit: 100 }).nextItems()
    return new Map(sandboxes.map(({ sandboxId, state }) => [sandboxId, state]))
  }
})
