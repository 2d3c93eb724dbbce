import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createPlatformClient } from '@atoll/client/platform'
import type { PlatformClient } from '@atoll/client/platform'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { SandboxOpts } from 'e2b'
import { bareHost, forwarding, hostState, namesOf, processesOf } from '../host-state.ts'
import type { HostState, Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { runtimes } from '../shell.ts'

for (const runtime of runtimes) {
  describe(
    `what is left on the host, under ${runtime}`,
    { concurrency: 1, timeout: 600_000 },
    () => {
      let temporaryDir: string
      let installation: Installation
      let names: Names
      let client: PlatformClient
      let bare: string[]
      let forwardingBefore: Awaited<ReturnType<typeof forwarding>>
      /** The server runs, has served a sandbox once, and no sandbox is there. */
      let idle: HostState
      let createMs: number

      const open = (timeoutMs = 600_000, options: SandboxOpts = {}) =>
        Sandbox.create('base', { ...installation.connection, timeoutMs, ...options })
      const look = () => hostState(names, temporaryDir)
      /** Waits, because part of the removal happens after the reply. */
      const assertIdle = async () => {
        await waitFor('the host to be as it was', async () => same(await look(), idle)).catch(
          () => {},
        )
        assert.deepEqual(await look(), idle)
      }
      const listed = () => Array.fromAsync(client.listSandboxes())

      before(async () => {
        temporaryDir = await mkdtemp('/var/tmp/atoll-tmp-')
        bare = await bareHost()
        forwardingBefore = await forwarding(await namesOf(temporaryDir))
        // No slots in advance: they would look like leftovers.
        installation = await install({
          ATOLL_RUNTIME: runtime,
          ATOLL_READY_SLOTS: '0',
          ATOLL_BASE_DISK_SIZE_MB: '64',
          TMPDIR: temporaryDir,
        })
        names = await namesOf(installation.dataDir)
        client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
        const started = performance.now()
        // The rules of this sandbox need the egress process, which then keeps running.
        const network = { allowOut: ['shop.example'], denyOut: ['0.0.0.0/0'] }
        const first = await open(600_000, { network })
        createMs = performance.now() - started
        const busy = await look()
        await first.kill()
        idle = await waitFor('the first sandbox to leave', async () => {
          const state = await look()
          return transient.every((kind) => state[kind].length === 0) && state
        })
        // Each kind of thing shows in the picture while a sandbox runs: otherwise its absence would say nothing.
        for (const kind of sandboxKinds) {
          assert.ok(busy[kind].length > idle[kind].length, `${kind} shows no sandbox`)
        }
      })
      after(async () => {
        await installation?.[Symbol.asyncDispose]()
        await rm(temporaryDir, { recursive: true, force: true })
      })

      test('nothing of a sandbox that was killed', async () => {
        const sandbox = await open()
        await sandbox.kill()
        await assertIdle()
      })

      test('nothing of a sandbox whose time was up', async () => {
        await open(1_000)
        await waitFor('its end', async () => (await listed()).length === 0)
        await assertIdle()
      })

      test('nothing of a sandbox that crashed', async () => {
        const sandbox = await open()
        for (const pid of await processesOf(names, sandbox.sandboxId)) {
          try {
            process.kill(pid, 'SIGKILL')
          } catch {} // gone with one of the others
        }
        await waitFor('its end', async () => (await listed()).length === 0)
        await assertIdle()
      })

      test('nothing of six sandboxes that came and went at once', async () => {
        const sandboxes = await Promise.all(Array.from({ length: 6 }, () => open()))
        await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
        await assertIdle()
      })

      const steps = runtime === 'gvisor' ? [1, 2, 3, 4, 5, 6, 7, 8] : [2, 4, 5, 7]
      for (const step of steps) {
        test(`nothing of a sandbox whose server was killed while making it, at ${step}/8 of the time`, async () => {
          const creating = open().catch(() => 'broken off')
          // There is no state to wait for: the kill is to come at any moment.
          await pause((createMs * step) / 8)
          await installation.crash()
          await creating
          await installation.start()
          // A sandbox that was created without a response to the client keeps running until it is killed.
          const made = await listed()
          assert.ok(made.length <= 1)
          for (const { sandboxID } of made) await client.killSandbox(sandboxID)
          assert.deepEqual(await listed(), [])
          await assertIdle()
        })
      }

      test('nothing at all after atoll down', async () => {
        await open()
        await installation.interrupt()
        await installation.down()
        // A process that was ended shows until the host's first process has taken note of it.
        const isGone = async () => Object.values(await look()).every(({ length }) => length === 0)
        await waitFor('the last process to be forgotten', isGone).catch(() => {})
        const left = Object.entries(await look()).filter(([, things]) => things.length > 0)
        assert.deepEqual(left, [])
        const known = new Set(bare)
        assert.deepEqual(
          (await bareHost()).filter((line) => !known.has(line)),
          [],
        )
        const { isOn, isWantedByOthers } = await forwarding(names)
        // Where other installations were there before and are not now, it is theirs what it was.
        if (isWantedByOthers) assert.ok(isOn)
        else if (!forwardingBefore.isWantedByOthers) assert.equal(isOn, forwardingBefore.isOn)
      })
    },
  )
}

const sandboxKinds = [
  'links',
  'networkNamespaces',
  'ownMounts',
  'loopDevices',
  'cgroups',
  'processes',
  'rules',
  'sandboxFolders',
  'runFiles',
] as const

/** Host resources that exist only while sandboxes run. */
const transient = [
  'links',
  'networkNamespaces',
  'pinningProcesses',
  'loopDevices',
  'processes',
  'sandboxFolders',
] as const

function same(one: HostState, other: HostState): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
