import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createPlatformClient } from '@atoll/client/platform'
import type { PlatformClient } from '@atoll/client/platform'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { runtimes, shell } from '../shell.ts'

/** Writes its process id, a number that rises by one, and the time, about every 50 ms. */
const counter = `
i=0
while :; do i=$((i+1)); echo "$$ $i $(date +%s%3N)" >> /tmp/counts; sleep 0.05; done
`
/** How late a sandbox may end on a busy machine. */
const lateMs = 60_000

for (const runtime of runtimes) {
  describe(`crash recovery under ${runtime}`, { concurrency: 1 }, () => {
    let installation: Installation
    let client: PlatformClient
    let sandboxes: readonly Sandbox[]
    let countingSandbox: Sandbox

    const createSandbox = () =>
      Sandbox.create('base', {
        ...installation.connection,
        timeoutMs: 600_000,
        envs: { GREETING: 'hello from the first day' },
      })
    /** Crashes and starts the server. A sandbox counts late on a busy machine, so the server stays away longer and longer. */
    const countWithoutServer = async () => {
      for (const downMs of [500, 2_000, 8_000, 32_000]) {
        await installation.crash()
        const downAt = Date.now()
        await waitFor('a while without a server', () => Date.now() > downAt + downMs)
        const upAt = Date.now()
        await installation.start()
        const values = await counts(countingSandbox)
        if (values.some(({ time }) => time > downAt && time < upAt)) return
      }
      assert.fail('the sandbox did not count while there was no server')
    }
    const listSandboxIds = async () => {
      const infos = await Array.fromAsync(client.listSandboxes())
      return new Set(infos.map(({ sandboxID }) => sandboxID))
    }

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime, ATOLL_BASE_MEMORY_MB: '256' })
      client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
      sandboxes = await Promise.all(Array.from({ length: 6 }, createSandbox))
      countingSandbox = sandboxes[0] ?? assert.fail()
      await countingSandbox.commands.run(counter, { background: true, timeoutMs: 0 })
      await waitFor('the first counts', async () => (await counts(countingSandbox)).length > 3)
    })
    after(() => installation?.[Symbol.asyncDispose]())

    test('all sandboxes survive a crash of the server, and their programs continue', async () => {
      await countWithoutServer()

      assert.deepEqual(await listSandboxIds(), new Set(sandboxes.map(({ sandboxId }) => sandboxId)))
      const results = await Promise.all(sandboxes.map((sandbox) => shell(sandbox, 'hostname')))
      assert.deepEqual(
        results.map(({ stdout }) => stdout.trim()),
        sandboxes.map(({ sandboxId }) => sandboxId),
      )
      const countsBefore = await counts(countingSandbox)
      assertUnbroken(countsBefore)
      const countsAfter = await counts(countingSandbox, countsBefore.length)
      assertUnbroken(countsAfter)
    })

    test('a sandbox ends at its timeout, also if the server was down then', async () => {
      const [, earlySandbox, lateSandbox] = sandboxes
      assert.ok(earlySandbox && lateSandbox)
      await client.setTimeout(earlySandbox.sandboxId, 1)
      await client.setTimeout(lateSandbox.sandboxId, 8)
      const ends = await Promise.all(
        [earlySandbox, lateSandbox].map(async ({ sandboxId }) =>
          endOf(await client.getSandbox(sandboxId)),
        ),
      )
      const [earlyEnd = 0, lateEnd = 0] = ends
      await installation.crash()
      await waitFor('the timeout of the first sandbox', () => Date.now() > earlyEnd)
      await installation.start()
      const readyAt = Date.now()

      await waitFor(
        'the first sandbox to be gone',
        async () => !(await listSandboxIds()).has(earlySandbox.sandboxId),
        {
          timeoutMs: lateMs,
        },
      )
      await waitFor(
        'the second sandbox to be gone',
        async () => {
          const isListed = (await listSandboxIds()).has(lateSandbox.sandboxId)
          assert.ok(isListed || Date.now() >= lateEnd, 'the sandbox ended before its timeout')
          return !isListed
        },
        { timeoutMs: Math.max(lateEnd - readyAt, 0) + lateMs },
      )
      const otherSandboxes = sandboxes.filter(
        (sandbox) => sandbox !== earlySandbox && sandbox !== lateSandbox,
      )
      assert.deepEqual(
        await listSandboxIds(),
        new Set(otherSandboxes.map(({ sandboxId }) => sandboxId)),
      )
    })

    test('a killed envd is replaced, with the same token and variables', async () => {
      const oldPid = await findEnvdPid(countingSandbox)
      // The kill ends this command or its connection.
      await shell(countingSandbox, `kill -9 ${oldPid}`).catch(() => {})
      const newPid = await waitFor('the new envd', () =>
        findEnvdPid(countingSandbox).catch(() => undefined),
      )
      assert.notEqual(newPid, oldPid)
      const { stdout } = await shell(countingSandbox, 'echo "$GREETING"', { user: 'user' })
      assert.equal(stdout, 'hello from the first day\n')
      const countsBefore = await counts(countingSandbox)
      assertUnbroken(await counts(countingSandbox, countsBefore.length))

      const { sandboxId } = countingSandbox
      const headers = { 'svc-sandbox-id': sandboxId, 'svc-sandbox-port': '49983' }
      const reply = await fetch(`${installation.url}/process.Process/List`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'x-access-token': 'another' },
        body: '{}',
      })
      assert.equal(reply.status, 401)
    })
  })
}

interface Count {
  readonly pid: number
  readonly number: number
  readonly time: number
}

/** Returns all counts so far, once there are more than `previousLength`. */
async function counts(sandbox: Sandbox, previousLength = 0): Promise<Count[]> {
  return waitFor('more counts', async () => {
    const { stdout } = await shell(sandbox, 'cat /tmp/counts 2>/dev/null || true')
    const lines = stdout.split('\n').slice(0, -1)
    const values = lines.map((line) => {
      const [pid = NaN, number = NaN, time = NaN] = line.split(' ').map(Number)
      return { pid, number, time }
    })
    return values.length > previousLength && values
  })
}

/** Checks that one process counted from 1 without a gap. */
function assertUnbroken(values: readonly Count[]): void {
  assert.deepEqual(
    values.map(({ number }) => number),
    values.map((_, index) => index + 1),
  )
  assert.equal(new Set(values.map(({ pid }) => pid)).size, 1)
}

function endOf({ endAt }: { readonly endAt: string }): number {
  return Date.parse(endAt)
}

async function findEnvdPid(sandbox: Sandbox): Promise<string> {
  const { stdout } = await shell(sandbox, 'pgrep -o -f "^/.atoll/lib/ld.so"')
  return stdout.trim() || assert.fail('no envd')
}
