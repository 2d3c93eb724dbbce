import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createPlatformClient } from '@atoll/client/platform'
import type { PlatformClient } from '@atoll/client/platform'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import type { SandboxOpts } from 'e2b'
import {
  bareHost,
  forwardedBefore,
  forwarding,
  hostState,
  namesOf,
  processesOf,
} from '../host-state.ts'
import type { HostState, Names } from '../host-state.ts'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { runtimes } from '../shell.ts'

for (const runtime of runtimes) {
  describe(`host resources under ${runtime}`, { concurrency: 1 }, () => {
    let temporaryDir: string
    let installation: Installation
    let names: Names
    let client: PlatformClient
    let hostBefore: string[]
    let wasForwarding: boolean
    /** State of the host with a running server that has no sandbox anymore. */
    let idleState: HostState
    let createMs: number

    const createSandbox = (timeoutMs = 600_000, options: SandboxOpts = {}) =>
      Sandbox.create('base', { ...installation.connection, timeoutMs, ...options })
    const readHostState = () => hostState(names, temporaryDir)
    /** Waits, because part of the removal happens after the reply. */
    const assertIdle = async () => {
      await waitFor('the host to be idle', async () =>
        isEqual(await readHostState(), idleState),
      ).catch(() => {})
      assert.deepEqual(await readHostState(), idleState)
    }
    const listSandboxes = () => Array.fromAsync(client.listSandboxes())

    before(async () => {
      temporaryDir = await mkdtemp('/var/tmp/atoll-tmp-')
      hostBefore = await bareHost()
      wasForwarding = await forwardedBefore()
      // No slots in advance: they would look like leftovers.
      installation = await install({
        ATOLL_RUNTIME: runtime,
        ATOLL_READY_SLOTS: '0',
        ATOLL_BASE_DISK_SIZE_MB: '64',
        TMPDIR: temporaryDir,
      })
      names = await namesOf(installation.dataDir)
      client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
      const startedAt = performance.now()
      // The rules of this sandbox need the egress process, which then keeps running.
      const network = { allowOut: ['shop.example'], denyOut: ['0.0.0.0/0'] }
      const firstSandbox = await createSandbox(600_000, { network })
      createMs = performance.now() - startedAt
      const busyState = await readHostState()
      await firstSandbox.kill()
      idleState = await waitFor('the first sandbox to be removed', async () => {
        const state = await readHostState()
        return transientKinds.every((kind) => state[kind].length === 0) && state
      })
      // Each kind of resource must be visible while a sandbox runs: otherwise its absence would prove nothing.
      for (const kind of sandboxKinds) {
        assert.ok(busyState[kind].length > idleState[kind].length, `${kind} shows no sandbox`)
      }
    })
    after(async () => {
      await installation?.[Symbol.asyncDispose]()
      await rm(temporaryDir, { recursive: true, force: true })
    })

    test('are gone after a sandbox is killed', async () => {
      const sandbox = await createSandbox()
      await sandbox.kill()
      await assertIdle()
    })

    test('are gone after a sandbox reaches its timeout', async () => {
      await createSandbox(1_000)
      await waitFor('the end of the sandbox', async () => (await listSandboxes()).length === 0)
      await assertIdle()
    })

    test('are gone after a sandbox crashes', async () => {
      const sandbox = await createSandbox()
      for (const pid of await processesOf(names, sandbox.sandboxId)) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {} // exited with another process
      }
      await waitFor('the end of the sandbox', async () => (await listSandboxes()).length === 0)
      await assertIdle()
    })

    test('are gone after six sandboxes are created and killed at once', async () => {
      const sandboxes = await Promise.all(Array.from({ length: 6 }, () => createSandbox()))
      await Promise.all(sandboxes.map((sandbox) => sandbox.kill()))
      await assertIdle()
    })

    /** A create that is answered before the crash does not count: the next attempt crashes earlier. */
    const crashDuringCreate = async (fraction: number) => {
      for (let attempt = 1; attempt <= 10; attempt += 1) {
        const startedAt = performance.now()
        let answeredMs = 0
        const creating = createSandbox().then(
          () => (answeredMs = performance.now() - startedAt),
          () => {},
        )
        // There is no state to wait for: the kill is to come at any moment.
        await pause(createMs * fraction)
        await installation.crash()
        await creating
        await installation.start()
        if (answeredMs === 0) return
        createMs = Math.min(answeredMs, createMs * 0.8)
        for (const { sandboxID } of await listSandboxes()) await client.killSandbox(sandboxID)
      }
      assert.fail('every create was answered before the crash')
    }

    const steps = runtime === 'gvisor' ? [1, 2, 3, 4, 5, 6, 7, 8] : [2, 4, 5, 7]
    for (const step of steps) {
      test(`are gone after the server is killed during a create, at ${step}/8 of its time`, async () => {
        await crashDuringCreate(step / 8)
        // A sandbox that was created without a response to the client keeps running until it is killed.
        const sandboxes = await listSandboxes()
        assert.ok(sandboxes.length <= 1)
        for (const { sandboxID } of sandboxes) await client.killSandbox(sandboxID)
        assert.deepEqual(await listSandboxes(), [])
        await assertIdle()
      })
    }

    test('are gone after atoll down', async () => {
      await createSandbox()
      await installation.interrupt()
      await installation.down()
      // A killed process stays visible until PID 1 of the host reaps it.
      const isGone = async () =>
        Object.values(await readHostState()).every(({ length }) => length === 0)
      await waitFor('the last process to be reaped', isGone).catch(() => {})
      const remaining = Object.entries(await readHostState()).filter(
        ([, items]) => items.length > 0,
      )
      assert.deepEqual(remaining, [])
      const linesBefore = new Set(hostBefore)
      const newLines = async () => (await bareHost()).filter((line) => !linesBefore.has(line))
      await waitFor('the host to be as before', async () => (await newLines()).length === 0).catch(
        () => {},
      )
      assert.deepEqual(await newLines(), [])
      // Another installation that starts or ends beside this test changes its table and the setting one after the other.
      const isAsBefore = async () => {
        const { isOn, isNeededByOthers } = await forwarding(names)
        return isOn === (isNeededByOthers || wasForwarding)
      }
      await waitFor('the host to forward packets only if it did before', isAsBefore)
    })
  })
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
const transientKinds = [
  'links',
  'networkNamespaces',
  'pinningProcesses',
  'loopDevices',
  'processes',
  'sandboxFolders',
] as const

function isEqual(first: HostState, second: HostState): boolean {
  return JSON.stringify(first) === JSON.stringify(second)
}
