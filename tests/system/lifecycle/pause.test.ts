/** Sandboxes that the SDK pauses and resumes: what a resume restores, and what the host holds during a pause. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox, SandboxError, SandboxNotFoundError } from 'e2b'
import { cellOf, namesOf, processesOfCell } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { joinTerminal, openTerminal } from '../terminal-by-sdk.ts'
import { tracesOf } from '../traces.ts'
import type { Traces } from '../traces.ts'
import { startStatefulProgram } from '../stateful-program.ts'

const polling = { intervalMs: 100 }

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`pause and resume on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime, ATOLL_BASE_MEMORY_MB: '512' })
      connection = installation.connection
    })
    after(() => installation[Symbol.asyncDispose]())

    test('a pause without memory keeps files and their metadata, and no process', async () => {
      const sandbox = await Sandbox.create({ ...connection, envs: { GIVEN: 'at create' } })
      const program = await startStatefulProgram(installation, sandbox)
      assert.equal((await program.request()).count, 1)
      const metadata = { author: 'somebody' }
      await sandbox.files.write('/home/user/with-words', 'kept', { metadata })
      await sandbox.commands.run('echo cached > /tmp/unflushed')
      const processEnd = assert.rejects(program.handle.wait(), SandboxError)

      assert.equal(await sandbox.pause({ keepMemory: false }), true)
      await processEnd
      assert.equal(await sandbox.pause({ keepMemory: false }), false)
      assert.equal((await sandbox.getInfo()).state, 'paused')
      await sandbox.connect()

      const print = 'echo "$(hostname) $E2B_SANDBOX_ID $GIVEN"; cat counts /tmp/unflushed'
      const id = sandbox.sandboxId
      const { stdout } = await sandbox.commands.run(print)
      assert.equal(stdout, `${id} ${id} at create\n1\ncached\n`)
      const info = await sandbox.files.getInfo('/home/user/with-words')
      assert.deepEqual([info.size, info.metadata], [4, metadata])
      assert.deepEqual(await sandbox.commands.list(), [])
      await assert.rejects(program.request(), /502/)
      await sandbox.kill()
    })

    if (runtime === 'gvisor') {
      test('a pause with memory keeps processes with 200 MB of data, open files, ports and terminals', async () => {
        const sandbox = await Sandbox.create({ ...connection, timeoutMs: 600_000 })
        const program = await startStatefulProgram(installation, sandbox, { dataMb: 200 })
        assert.equal((await program.request()).count, 1)
        const { pid, sha256 } = await program.request()
        const metadata = { author: 'somebody' }
        await sandbox.files.write('/home/user/with-words', 'kept', { metadata })
        const terminal = await openTerminal(sandbox)
        await terminal.type('cd /tmp; MINE=kept; echo $$ do""ne\n')
        const [shellPid] = (await terminal.waitForText(/\d+ done/)).split(' ')
        const streams = [program.handle.wait(), terminal.handle.wait()]
        const ends = streams.map((stream) => assert.rejects(stream, SandboxError))

        assert.equal(await sandbox.pause(), true)
        await Promise.all(ends)
        const resumed = await Sandbox.connect(sandbox.sandboxId, connection)
        assert.equal(resumed.sandboxId, sandbox.sandboxId)

        const { random: _random, ...state } = await program.request()
        assert.deepEqual(state, { pid, sha256, count: 3 })
        assert.equal(await resumed.files.read(program.file), '1\n2\n3\n')
        const info = await resumed.files.getInfo('/home/user/with-words')
        assert.deepEqual([info.size, info.metadata], [4, metadata])
        const resumedTerminal = await joinTerminal(resumed, terminal.handle.pid)
        await resumedTerminal.type('echo "$$ $MINE $PWD"\n')
        await resumedTerminal.waitForText(new RegExp(`\\r${shellPid} kept /tmp\\r`))
        // The handles and the token of the first client still work.
        await terminal.type('exit 5\n')
        await assert.rejects(resumedTerminal.handle.wait(), /exit status 5/)
        const pids = (await sandbox.commands.list()).map((process) => process.pid)
        assert.deepEqual(pids, [program.handle.pid])
        const handle = await resumed.commands.connect(program.handle.pid)
        assert.equal(await handle.kill(), true)
        await sandbox.kill()
      })

      test('a pause with memory is refused while a deleted file is open, and the error names the file', async () => {
        const sandbox = await Sandbox.create(connection)
        const holder = await sandbox.commands.run('exec 3>/tmp/short-lived; rm /tmp/*; cat', {
          background: true,
          timeoutMs: 0,
          stdin: true,
        })
        await holder.sendStdin('still here')
        await waitFor('the file to be gone', () => holder.stdout !== '', polling)
        const refusal = /400: .*holds a deleted file open: "\/tmp\/short-lived"/
        await assert.rejects(sandbox.pause(), refusal)
        await assert.rejects(sandbox.createSnapshot(), refusal)
        await assert.rejects(sandbox.fork(connection), refusal)
        assert.equal((await sandbox.getInfo()).state, 'running')
        const handle = await sandbox.commands.connect(holder.pid)
        await handle.closeStdin()
        await handle.wait()
        assert.equal(await sandbox.pause(), true)
        await sandbox.connect()
        assert.equal((await sandbox.commands.run('echo on')).stdout, 'on\n')
        await sandbox.kill()
      })

      test('a sandbox that was paused with memory can be booted from its files', async () => {
        const sandbox = await Sandbox.create(connection)
        const program = await startStatefulProgram(installation, sandbox)
        assert.equal((await program.request()).count, 1)
        assert.equal(await sandbox.pause(), true)
        await sandbox.connect({ onResume: 'reboot' })
        assert.deepEqual(await sandbox.commands.list(), [])
        assert.equal(await sandbox.files.read(program.file), '1\n')
        await sandbox.kill()
      })

      test('name, variables and clock are right after a resume', async () => {
        const options = { ...connection, envs: { GIVEN: 'at create' } }
        const sandbox = await Sandbox.create(options)
        const print = 'echo "$(hostname) $E2B_SANDBOX_ID $GIVEN"'
        const { stdout: identity } = await sandbox.commands.run(print)
        assert.equal(identity, `${sandbox.sandboxId} ${sandbox.sandboxId} at create\n`)
        await sandbox.betaPause()
        const pausedAt = Date.now()
        // Only after some time does a stopped clock differ clearly from an inexact one.
        await waitFor('time to pass', () => Date.now() - pausedAt > 2000)
        await sandbox.connect()
        assert.equal((await sandbox.commands.run(print)).stdout, identity)
        const earliest = Date.now()
        const { stdout: timestamp } = await sandbox.commands.run('date +%s%3N')
        const clock = Number(timestamp)
        assert.ok(
          clock > earliest - 500 && clock < Date.now() + 500,
          `${earliest} outside, ${clock} inside`,
        )
        await sandbox.kill()
      })

      test('a paused sandbox is listed as paused, and the host has only its files', async () => {
        const names = await namesOf(installation.dataDir)
        const tracesBefore = await tracesOf(names)
        const run = randomUUID()
        const sandbox = await Sandbox.create({ ...connection, metadata: { run } })
        const { sandboxId } = sandbox
        assert.equal(await Sandbox.pause(sandboxId, connection), true)
        assert.equal(await Sandbox.pause(sandboxId, connection), false)

        assert.equal(await sandbox.isRunning(), false)
        await assert.rejects(sandbox.commands.run('true'), SandboxNotFoundError)
        const { state, metadata } = await sandbox.getInfo()
        assert.deepEqual([state, metadata], ['paused', { run }])
        const list = (states: ('running' | 'paused')[]) =>
          Sandbox.list({ ...connection, query: { metadata: { run }, state: states } }).nextItems()
        assert.deepEqual(await list(['running']), [])
        assert.deepEqual(
          (await list(['paused'])).map((item) => [item.sandboxId, item.state]),
          [[sandboxId, 'paused']],
        )

        const cell = await cellOf(names, sandboxId)
        const expected = countsOf({
          ...tracesBefore,
          pausedFolders: [...tracesBefore.pausedFolders, cell],
        })
        await waitFor(
          'the host to hold only the files of the sandbox',
          async () => isDeepStrictEqual(countsOf(await tracesOf(names)), expected),
          polling,
        ).catch(() => {})
        assert.deepEqual(countsOf(await tracesOf(names)), expected)
        assert.deepEqual(await processesOfCell(names, cell), [])
        const files = await readdir(join(names.dataDir, 'cells', cell))
        assert.deepEqual(files.toSorted(), ['bundle', 'cell.json', 'disk.img', 'memory'])
        assert.equal(await sandbox.kill(), true)
        assert.deepEqual((await tracesOf(names)).pausedFolders, tracesBefore.pausedFolders)
        assert.equal(await sandbox.kill(), false)
        await assert.rejects(Sandbox.connect(sandboxId, connection), SandboxNotFoundError)
        await assert.rejects(Sandbox.pause(sandboxId, connection), SandboxNotFoundError)
      })
    }

    if (runtime === 'runc') {
      test('a pause with memory is refused with advice, and the sandbox is not affected', async () => {
        const sandbox = await Sandbox.create(connection)
        const handle = await sandbox.commands.run('cat', {
          background: true,
          timeoutMs: 0,
          stdin: true,
        })
        await assert.rejects(sandbox.pause(), /400: .*memory: false/)
        assert.equal((await sandbox.getInfo()).state, 'running')
        await handle.sendStdin('still here')
        await handle.closeStdin()
        assert.equal((await handle.wait()).stdout, 'still here')
        await sandbox.kill()
      })
    }
  })
}

/** Counts traces. Network slots are prepared ahead: their names change, their number does not. */
function countsOf(traces: Traces): Record<string, number> {
  return Object.fromEntries(Object.entries(traces).map(([kind, { length }]) => [kind, length]))
}
