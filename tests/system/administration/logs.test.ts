/** Sandbox logs, from the processes to the clients: SDK, published command line and plain HTTP. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const program = fileURLToPath(import.meta.resolve('@e2b/cli/dist/index.js'))
const polling = { intervalMs: 200 }

interface Entry {
  readonly timestamp: string
  readonly level: string
  readonly message: string
  readonly fields: Readonly<Record<string, string>>
}

for (const runtime of ['gvisor', 'runc']) {
  suite(`logs under ${runtime}`, () => {
    const skipWithoutMemory = runtime === 'runc' && 'memory is not kept'
    let installation: Installation
    let home: string

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime })
      home = await mkdtemp(join(tmpdir(), 'e2b-home-'))
    })
    after(async () => {
      await installation[Symbol.asyncDispose]()
      await rm(home, { recursive: true })
    })

    const create = () => Sandbox.create({ ...installation.connection, timeoutMs: 300_000 })

    async function logs(id: string, query = 'direction=forward'): Promise<Entry[]> {
      const headers = { 'x-api-key': installation.apiKey }
      const reply = await fetch(`${installation.url}/v2/sandboxes/${id}/logs?${query}`, { headers })
      assert.equal(reply.status, 200)
      const body: { logs: Entry[] } = JSON.parse(await reply.text())
      return body.logs
    }

    const messages = async (id: string, query?: string) =>
      (await logs(id, query)).map(({ message }) => message)

    const ticksOf = async (id: string) =>
      (await messages(id, 'search=tick%20&direction=forward')).filter((message) =>
        message.startsWith('tick'),
      )
    const expectedTicks = (ticks: readonly string[]) => ticks.map((_, i) => `tick ${i + 1}`)

    const e2b = (...args: readonly string[]) =>
      tryRun(process.execPath, [program, ...args], { env: { ...installation.env, HOME: home } })

    function follow(id: string) {
      const child = spawn(process.execPath, [program, 'sandbox', 'logs', id, '--follow'], {
        env: { ...installation.env, HOME: home },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
      return {
        exit: once(child, 'exit'),
        text: () => stripVTControlCharacters(output),
        [Symbol.dispose]: () => void child.kill('SIGKILL'),
      }
    }

    test('the published command line shows a command and its output', async () => {
      const sandbox = await create()
      await sandbox.files.write('a.txt', 'content of the file')
      const command = 'echo to stdout; echo to stderr >&2; exit 3'
      await assert.rejects(sandbox.commands.run(command, { envs: { SECRET: 'hidden-value' } }))
      const result = await e2b('sandbox', 'logs', sandbox.sandboxId, '--format', 'json')
      assert.equal(result.code, 0, result.stderr)
      const lines = result.stdout
        .split('\n')
        .filter(Boolean)
        .map((line): Record<string, string> => JSON.parse(line))
      const entryOf = (message: string) =>
        lines.find((line) => line['message'] === message) ?? assert.fail(result.stdout)
      assert.equal(entryOf('Sandbox ready')['logger'], 'envd')
      assert.match(entryOf('Process started')['command'] ?? '', /echo to stdout/)
      assert.equal(entryOf('Process started')['user'], 'user')
      assert.equal(entryOf('to stdout')['stream'], 'stdout')
      assert.equal(entryOf('to stderr')['stream'], 'stderr')
      assert.equal(entryOf('Process ended')['exitCode'], '3')
      assert.equal(entryOf('to stdout')['pid'], entryOf('Process ended')['pid'])
      assert.ok(!result.stdout.includes('a.txt'))
      const debugLogs = await e2b('sandbox', 'logs', sandbox.sandboxId, '--level', 'debug')
      assert.match(debugLogs.stdout, /POST \/files \/home\/user\/a\.txt/)
      assert.doesNotMatch(debugLogs.stdout, /hidden-value|content of the file/)
    })

    test('a follower gets lines as they arrive, until the sandbox ends', async () => {
      const sandbox = await create()
      using following = follow(sandbox.sandboxId)
      await waitFor('the first entry', () => following.text().includes('Sandbox ready'), polling)
      for (const word of ['first', 'second']) {
        await sandbox.commands.run(`echo the ${word} line`)
        const line = `message: 'the ${word} line'`
        await waitFor(line, () => following.text().includes(line), polling)
      }
      await sandbox.kill()
      assert.deepEqual(await following.exit, [0, null])
      assert.match(following.text(), /sandbox is closed/)
      assert.equal(following.text().split("message: 'the first line'").length, 2)
    })

    test('level, search, direction, limit and cursor select entries', async () => {
      const sandbox = await create()
      await sandbox.commands.run('for i in 1 2 3 4 5 6 7; do echo "number $i"; done')
      const { sandboxId: id } = sandbox
      const numbers = (...list: number[]) => list.map((number) => `number ${number}`)
      assert.deepEqual(
        await messages(id, 'search=number%20&direction=forward&level=info'),
        // The entry of the command matches too: its field `command` has the words.
        ['Process started', ...numbers(1, 2, 3, 4, 5, 6, 7)],
      )
      assert.deepEqual(await messages(id, 'search=number%20&limit=2'), numbers(7, 6))
      assert.deepEqual(await messages(id, 'level=error'), [])
      const allMessages = await messages(id)
      for (const direction of ['forward', 'backward']) {
        const pagedMessages: string[] = []
        for (let cursor = ''; ;) {
          const page = await logs(id, `direction=${direction}&limit=2${cursor}`)
          const last = page.at(-1)
          if (!last) break
          pagedMessages.push(...page.map(({ message }) => message))
          const timestamp = Date.parse(last.timestamp)
          cursor = `&cursor=${direction === 'forward' ? timestamp + 1 : timestamp}`
        }
        assert.deepEqual(
          direction === 'forward' ? pagedMessages : pagedMessages.toReversed(),
          allMessages,
        )
      }
    })

    test('a process that prints without end is not slowed down, and part of its output is logged', async () => {
      const sandbox = await create()
      const startedAt = performance.now()
      let size = 0
      const onStdout = (text: string) => void (size += text.length)
      const command = 'yes some words | head -c 10000000'
      await sandbox.commands.run(command, { onStdout, timeoutMs: 120_000 })
      assert.equal(size, 10_000_000)
      const log = await waitFor(
        'the end',
        async () => {
          const messagesSoFar = await messages(sandbox.sandboxId, 'direction=forward')
          return messagesSoFar.includes('Process ended') && messagesSoFar
        },
        polling,
      )
      // 500 lines at once, and 100 more each second.
      assert.ok(log.length < 600 + (performance.now() - startedAt) / 10)
      assert.ok(log.some((message) => /and \d{6,} bytes of output$/.test(message)))
    })

    test('the log ends with the last output before a kill and the reason of the end', async () => {
      const sandbox = await create()
      await sandbox.commands.run('echo last words')
      await sandbox.kill()
      const { sandboxId: id } = sandbox
      await waitFor(
        'the end',
        async () => (await messages(id)).includes('Sandbox ended: it was killed'),
        polling,
      )
      const log = await messages(id)
      assert.deepEqual(log.slice(-3), [
        'last words',
        'Process ended',
        'Sandbox ended: it was killed',
      ])
    })

    test('a restarted envd logs its restart, and no earlier entry is lost', async () => {
      const sandbox = await create()
      const { sandboxId: id } = sandbox
      await sandbox.commands.run('echo words from before')
      await waitFor(
        'words',
        async () => (await messages(id)).includes('words from before'),
        polling,
      )
      const kill =
        'for p in $(ls /proc | grep -x "[0-9]*"); do ' +
        '[ $p != 1 ] && grep -qa "envd[.]js" /proc/$p/cmdline && kill -9 $p; done'
      await sandbox.commands.run(kill, { user: 'root' }).catch(() => {})
      const hasRestarted = async () => (await messages(id)).includes('envd restarted')
      await waitFor('the next envd', hasRestarted, polling)
      const result = await sandbox.commands.run('echo words from afterwards')
      assert.equal(result.stdout, 'words from afterwards\n')
      const log = await messages(id)
      const words = log.filter((message) => message.startsWith('words'))
      assert.deepEqual(words, ['words from before', 'words from afterwards'])
    })

    test('the server logs entries from its downtime once, after its restart', async () => {
      const sandbox = await create()
      const { sandboxId: id } = sandbox
      const script = 'i=0; while true; do i=$((i+1)); echo "tick $i"; sleep 0.2; done'
      await sandbox.commands.run(script, { background: true, timeoutMs: 0 })
      await waitFor('a tick', async () => (await messages(id)).includes('tick 3'), polling)
      await installation.crash()
      await installation.start()
      const countBefore = (await messages(id)).length
      await waitFor(
        'more ticks',
        async () => (await messages(id)).length > countBefore + 5,
        polling,
      )
      const ticks = await ticksOf(id)
      assert.deepEqual(ticks, expectedTicks(ticks))
      await sandbox.kill()
    })

    test('envd gives its log only to the node, not to clients or programs inside', async () => {
      const sandbox = await create()
      const insideResult = await sandbox.commands.run(
        'curl -s -o /dev/null -w "%{http_code}" "http://127.0.0.1:49983/logs?after=0"',
      )
      assert.equal(insideResult.stdout, '401')
      const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49983' }
      const outsideReply = await fetch(`${installation.url}/logs?after=0`, { headers })
      assert.equal(outsideReply.status, 404)
    })

    test('a pause neither loses nor repeats log entries', { skip: skipWithoutMemory }, async () => {
      const sandbox = await create()
      const { sandboxId: id } = sandbox
      const script = 'i=0; while true; do i=$((i+1)); echo "tick $i"; sleep 0.2; done'
      await sandbox.commands.run(script, { background: true, timeoutMs: 0 })
      await waitFor('a tick', async () => (await ticksOf(id)).length > 2, polling)
      await sandbox.pause()
      const countBefore = (await ticksOf(id)).length
      await Sandbox.connect(id, installation.connection)
      await waitFor('more', async () => (await ticksOf(id)).length > countBefore + 5, polling)
      const ticks = await ticksOf(id)
      assert.deepEqual(ticks, expectedTicks(ticks))
      await Sandbox.kill(id, installation.connection)
    })

    test(
      'a fork has its own log, which begins with the fork',
      { skip: skipWithoutMemory },
      async () => {
        const sandbox = await create()
        const script = 'i=0; while true; do i=$((i+1)); echo "tick $i"; sleep 0.2; done'
        await sandbox.commands.run(script, { background: true, timeoutMs: 0 })
        const parent = sandbox.sandboxId
        await waitFor('a tick', async () => (await ticksOf(parent)).length > 2, polling)
        const [fork] = await sandbox.fork()
        if (!(fork instanceof Sandbox)) assert.fail(String(fork))
        const child = fork.sandboxId
        const countBefore = (await ticksOf(parent)).length
        await waitFor('ticks of the fork', async () => (await ticksOf(child)).length > 2, polling)
        await waitFor('more', async () => (await ticksOf(parent)).length > countBefore, polling)
        const [first, ...laterMessages] = await messages(child)
        assert.equal(first, 'Sandbox ready')
        assert.ok(laterMessages.every((message) => message.startsWith('tick')))
        assert.ok(!laterMessages.includes('tick 1'))
        const ticks = await ticksOf(parent)
        assert.deepEqual(ticks, expectedTicks(ticks))
        await Promise.all([sandbox.kill(), fork.kill()])
      },
    )
  })
}
