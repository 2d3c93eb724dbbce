/** Sandboxes that pause at their timeout and resume on traffic (`lifecycle` of the create request). */
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { startStatefulProgram } from '../stateful-program.ts'

const polling = { intervalMs: 100 }

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`auto-pause on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime, ATOLL_BASE_MEMORY_MB: '256' })
      connection = installation.connection
    })
    after(() => installation[Symbol.asyncDispose]())

    const pauseByTimeout = async (sandbox: Sandbox) => {
      await sandbox.setTimeout(1000)
      const isPaused = async () => (await sandbox.getInfo()).state === 'paused'
      await waitFor('the sandbox to be paused', isPaused, polling)
      // The state is `paused` as soon as the pause begins. A second pause waits for the end of the first.
      await sandbox.pause()
    }

    if (runtime === 'gvisor') {
      test('a sandbox pauses at its timeout, and a connect resumes it with its memory', async () => {
        const lifecycle = { onTimeout: 'pause' } as const
        const sandbox = await Sandbox.create({ ...connection, lifecycle })
        const info = await sandbox.getInfo()
        assert.deepEqual(info.lifecycle, { onTimeout: 'pause', autoResume: false })
        const program = await startStatefulProgram(installation, sandbox)
        assert.equal((await program.request()).count, 1)
        await pauseByTimeout(sandbox)
        await assert.rejects(program.request(), /answered 502/)
        assert.equal(await sandbox.isRunning(), false)
        assert.equal((await sandbox.getInfo()).state, 'paused')
        await sandbox.connect({ timeoutMs: 60_000 })
        assert.equal((await program.request()).count, 2)
        await pauseByTimeout(sandbox)
        await sandbox.kill()
      })

      test('requests to a port of a paused sandbox resume the sandbox and get a response', async () => {
        const lifecycle = { onTimeout: 'pause', autoResume: true } as const
        const sandbox = await Sandbox.create({ ...connection, lifecycle, timeoutMs: 60_000 })
        const info = await sandbox.getInfo()
        assert.deepEqual(info.lifecycle, { onTimeout: 'pause', autoResume: true })
        const program = await startStatefulProgram(installation, sandbox)
        assert.equal((await program.request()).count, 1)
        await pauseByTimeout(sandbox)

        const replies = await Promise.all([program.request(), program.request(), program.request()])
        assert.deepEqual(new Set(replies.map(({ count }) => count)), new Set([2, 3, 4]))
        const { state, endAt } = await sandbox.getInfo()
        assert.equal(state, 'running')
        // Traffic cannot name a timeout, so a sandbox that traffic resumes gets at least five minutes.
        const remainingMs = endAt.getTime() - Date.now()
        assert.ok(remainingMs > 200_000 && remainingMs <= 300_000, `${remainingMs} ms are left`)

        assert.equal(await sandbox.pause(), true)
        const { stdout } = await sandbox.commands.run(`cat ${program.file}`)
        // Three threads write the last three, in any order.
        assert.deepEqual(stdout.trim().split('\n').toSorted(), ['1', '2', '3', '4'])
        await sandbox.kill()
      })

      test('a sandbox whose memory cannot be saved is paused without memory after failed attempts', async () => {
        const lifecycle = { onTimeout: 'pause', autoResume: true } as const
        const sandbox = await Sandbox.create({ ...connection, lifecycle })
        await sandbox.files.write('/home/user/note', 'kept')
        const command = 'exec 9>/tmp/gone; rm /tmp/gone; echo held; sleep 600'
        const holder = await sandbox.commands.run(command, { background: true, timeoutMs: 0 })
        await waitFor('the file to be held', () => holder.stdout === 'held\n', polling)
        holder.wait().catch(() => {})
        await assert.rejects(sandbox.pause(), /400: .*gone/)
        await sandbox.setTimeout(1000)
        // The pause with memory is refused while the program runs, and the state is `paused` during each attempt.
        const canPause = () =>
          sandbox.pause().then(
            () => true,
            () => false,
          )
        await waitFor('the pause to succeed', canPause, { timeoutMs: 120_000, intervalMs: 1000 })
        assert.equal(await sandbox.isRunning(), false)
        assert.equal((await sandbox.getInfo()).state, 'paused')
        await sandbox.connect()
        assert.equal(await sandbox.files.read('/home/user/note'), 'kept')
        assert.deepEqual(await sandbox.commands.list(), [])
        await sandbox.kill()
      })

      test('a request to envd without the token does not resume a paused sandbox', async () => {
        const lifecycle = { onTimeout: 'pause', autoResume: true } as const
        const sandbox = await Sandbox.create({ ...connection, lifecycle })
        await sandbox.pause()
        const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' }
        for (const token of [{}, { 'X-Access-Token': '0'.repeat(64) }]) {
          const reply = await fetch(`${installation.url}/health`, {
            headers: { ...headers, ...token },
          })
          assert.equal(reply.status, 403)
        }
        assert.equal((await sandbox.getInfo()).state, 'paused')
        await sandbox.kill()
      })
    }

    test('auto-pause without memory keeps the files, and traffic does not resume the sandbox', async () => {
      const onTimeout = { action: 'pause', keepMemory: false } as const
      const sandbox = await Sandbox.create({ ...connection, lifecycle: { onTimeout } })
      const program = await startStatefulProgram(installation, sandbox)
      assert.equal((await program.request()).count, 1)
      await pauseByTimeout(sandbox)
      await assert.rejects(program.request(), /answered 502/)
      assert.equal((await sandbox.getInfo()).state, 'paused')
      await sandbox.connect()
      assert.equal(await sandbox.files.read(program.file), '1\n')
      assert.deepEqual(await sandbox.commands.list(), [])
      await sandbox.kill()
    })

    if (runtime === 'runc') {
      test('auto-pause keeps the files, although the runtime cannot save memory', async () => {
        const lifecycle = { onTimeout: 'pause', autoResume: true } as const
        const sandbox = await Sandbox.create({ ...connection, lifecycle })
        await sandbox.files.write('/home/user/note', 'kept')
        await pauseByTimeout(sandbox)
        assert.equal(await sandbox.isRunning(), false)
        assert.equal((await sandbox.getInfo()).state, 'paused')
        await sandbox.connect()
        assert.equal(await sandbox.files.read('/home/user/note'), 'kept')
        await sandbox.kill()
      })
    }
  })
}
