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
/** How much later than promised a sandbox may end on a busy machine. */
const lateMs = 60_000

for (const runtime of runtimes) {
  describe(`when something crashes, under ${runtime}`, { concurrency: 1 }, () => {
    let installation: Installation
    let client: PlatformClient
    let sandboxes: readonly Sandbox[]
    let counting: Sandbox

    const open = () =>
      Sandbox.create('base', {
        ...installation.connection,
        timeoutMs: 600_000,
        envs: { GREETING: 'hello from the first day' },
      })
    const listed = async () => {
      const all = await Array.fromAsync(client.listSandboxes())
      return new Set(all.map(({ sandboxID }) => sandboxID))
    }

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime, ATOLL_BASE_MEMORY_MB: '256' })
      client = createPlatformClient({ url: installation.url, apiKey: installation.apiKey })
      sandboxes = await Promise.all(Array.from({ length: 6 }, open))
      counting = sandboxes[0] ?? assert.fail()
      await counting.commands.run(counter, { background: true, timeoutMs: 0 })
      await waitFor('the first counts', async () => (await counts(counting)).length > 3)
    })
    after(() => installation?.[Symbol.asyncDispose]())

    test('all sandboxes survive the server, and their programs continue', async () => {
      await installation.crash()
      const down = Date.now()
      // Some counts belong to the time without a server.
      await waitFor('a while without a server', () => Date.now() > down + 500)
      const up = Date.now()
      await installation.start()

      assert.deepEqual(await listed(), new Set(sandboxes.map(({ sandboxId }) => sandboxId)))
      const answers = await Promise.all(sandboxes.map((sandbox) => shell(sandbox, 'hostname')))
      assert.deepEqual(
        answers.map(({ stdout }) => stdout.trim()),
        sandboxes.map(({ sandboxId }) => sandboxId),
      )
      const seen = await counts(counting)
      assert.ok(seen.some(({ time }) => time > down && time < up))
      assertUnbroken(seen)
      const goneOn = await counts(counting, seen.length)
      assertUnbroken(goneOn)
    })

    test('a sandbox ends on time, whether or not a server was there', async () => {
      const [, early, late] = sandboxes
      assert.ok(early && late)
      await client.setTimeout(early.sandboxId, 1)
      await client.setTimeout(late.sandboxId, 8)
      const ends = await Promise.all(
        [early, late].map(async ({ sandboxId }) => endOf(await client.getSandbox(sandboxId))),
      )
      const [earlyEnd = 0, lateEnd = 0] = ends
      await installation.crash()
      await waitFor('the end of the first one', () => Date.now() > earlyEnd)
      await installation.start()
      const ready = Date.now()

      await waitFor('it to be gone', async () => !(await listed()).has(early.sandboxId), {
        timeoutMs: lateMs,
      })
      await waitFor(
        'the end of the second one',
        async () => {
          const isThere = (await listed()).has(late.sandboxId)
          assert.ok(isThere || Date.now() >= lateEnd, 'it ended too early')
          return !isThere
        },
        { timeoutMs: Math.max(lateEnd - ready, 0) + lateMs },
      )
      const others = sandboxes.filter((sandbox) => sandbox !== early && sandbox !== late)
      assert.deepEqual(await listed(), new Set(others.map(({ sandboxId }) => sandboxId)))
    })

    test('a killed envd is replaced, with the same token and variables', async () => {
      const earlier = await daemonOf(counting)
      // The command dies of it, or the connection does.
      await shell(counting, `kill -9 ${earlier}`).catch(() => {})
      const later = await waitFor('the new daemon', () => daemonOf(counting).catch(() => undefined))
      assert.notEqual(later, earlier)
      const { stdout } = await shell(counting, 'echo "$GREETING"', { user: 'user' })
      assert.equal(stdout, 'hello from the first day\n')
      const seen = await counts(counting)
      assertUnbroken(await counts(counting, seen.length))

      const { sandboxId } = counting
      const headers = { 'svc-sandbox-id': sandboxId, 'svc-sandbox-port': '49983' }
      const refused = await fetch(`${installation.url}/process.Process/List`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'x-access-token': 'another' },
        body: '{}',
      })
      assert.equal(refused.status, 401)
    })
  })
}

interface Count {
  readonly pid: number
  readonly number: number
  readonly time: number
}

/** All counts so far, once there are more than `known`. */
async function counts(sandbox: Sandbox, known = 0): Promise<Count[]> {
  return waitFor('more counts', async () => {
    const { stdout } = await shell(sandbox, 'cat /tmp/counts 2>/dev/null || true')
    const lines = stdout.split('\n').slice(0, -1)
    const found = lines.map((line) => {
      const [pid = NaN, number = NaN, time = NaN] = line.split(' ').map(Number)
      return { pid, number, time }
    })
    return found.length > known && found
  })
}

/** One process, from one on without a gap. */
function assertUnbroken(seen: readonly Count[]): void {
  assert.deepEqual(
    seen.map(({ number }) => number),
    seen.map((_, index) => index + 1),
  )
  assert.equal(new Set(seen.map(({ pid }) => pid)).size, 1)
}

function endOf({ endAt }: { readonly endAt: string }): number {
  return Date.parse(endAt)
}

async function daemonOf(sandbox: Sandbox): Promise<string> {
  const { stdout } = await shell(sandbox, 'pgrep -o -f "^/.atoll/lib/ld.so"')
  return stdout.trim() || assert.fail('no daemon')
}
