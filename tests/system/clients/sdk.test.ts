/** The published SDK, unmodified, as its users call it, on both runtimes. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import {
  AuthenticationError,
  CommandExitError,
  NotFoundError,
  Sandbox,
  SandboxNotFoundError,
  TimeoutError,
} from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { serverSource } from '../server-in-sandbox.ts'
import { openTerminal } from '../terminal-by-sdk.ts'

const polling = { intervalMs: 100 }

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`the SDK on ${runtime}`, () => {
    let installation: Installation
    let connection: Installation['connection']
    /** Shared by the tests that do not change its state. */
    let sandbox: Sandbox

    before(async () => {
      installation = await install({ ATOLL_RUNTIME: runtime })
      connection = installation.connection
      sandbox = await Sandbox.create({
        ...connection,
        envs: { GIVEN_AT_CREATE: 'to all' },
        timeoutMs: 600_000,
      })
    })
    after(() => installation[Symbol.asyncDispose]())

    test('a sandbox is created from base with metadata and the requested timeout', async () => {
      const options = { ...connection, metadata: { purpose: 'a test' }, timeoutMs: 90_000 }
      const newSandbox = await Sandbox.create(options)
      const info = await newSandbox.getInfo()
      assert.equal(info.sandboxId, newSandbox.sandboxId)
      assert.deepEqual(
        [info.name, info.state, info.metadata],
        ['base', 'running', { purpose: 'a test' }],
      )
      assert.equal(info.endAt.getTime() - info.startedAt.getTime(), 90_000)
      await newSandbox.setTimeout(120_000)
      const { startedAt, endAt } = await Sandbox.getInfo(newSandbox.sandboxId, connection)
      assert.ok(endAt.getTime() - startedAt.getTime() >= 120_000)
      await newSandbox.kill()
    })

    test('a command returns its output, its errors and its exit code', async () => {
      const result = await sandbox.commands.run('echo out; echo err >&2')
      assert.deepEqual([result.exitCode, result.stdout, result.stderr], [0, 'out\n', 'err\n'])
      const failure = sandbox.commands.run('echo half; echo why >&2; exit 7')
      await assert.rejects(failure, (error) => {
        assert.ok(error instanceof CommandExitError)
        assert.deepEqual([error.exitCode, error.stdout, error.stderr], [7, 'half\n', 'why\n'])
        return true
      })
    })

    test('a command runs as user in its home, or as another user in another folder', async () => {
      const print = 'echo $(id -un) $(id -gn) $HOME $PWD $USER'
      const { stdout: asUser } = await sandbox.commands.run(print)
      assert.equal(asUser, 'user user /home/user /home/user user\n')
      const { stdout: asRoot } = await sandbox.commands.run(print, { user: 'root', cwd: '/etc' })
      assert.equal(asRoot, 'root root /root /etc root\n')
    })

    test('variables of a command override variables of the sandbox', async () => {
      const print = 'echo "$GIVEN_AT_CREATE, $MINE"'
      const { stdout: output } = await sandbox.commands.run(print, { envs: { MINE: 'a b' } })
      assert.equal(output, 'to all, a b\n')
      const envs = { GIVEN_AT_CREATE: 'to one' }
      assert.equal((await sandbox.commands.run(print, { envs })).stdout, 'to one, \n')
    })

    test('a command past its timeout is killed and fails with TimeoutError', async () => {
      await assert.rejects(sandbox.commands.run('sleep 1000', { timeoutMs: 1500 }), TimeoutError)
      const options = { background: true, timeoutMs: 3000 } as const
      const handle = await sandbox.commands.run('exec sleep 1000', options)
      await assert.rejects(handle.wait(), TimeoutError)
      await waitFor(
        'the process to be gone',
        async () => (await sandbox.commands.list()).every((process) => process.pid !== handle.pid),
        polling,
      )
      const { stdout } = await sandbox.commands.run('pgrep -x sleep || echo none')
      assert.equal(stdout, 'none\n')
    })

    test('a command in the background streams output, reads stdin, and is listed', async () => {
      let output = ''
      const handle = await sandbox.commands.run('while read line; do echo "heard $line"; done', {
        background: true,
        timeoutMs: 0,
        stdin: true,
        onStdout: (chunk) => void (output += chunk),
      })
      await handle.sendStdin('one\n')
      await waitFor('the first line', () => output === 'heard one\n', polling)
      const processes = await sandbox.commands.list()
      assert.ok(processes.some(({ pid, cmd }) => pid === handle.pid && cmd === '/bin/bash'))
      await sandbox.commands.sendStdin(handle.pid, 'two\n')
      await sandbox.commands.closeStdin(handle.pid)
      const { exitCode, stdout } = await handle.wait()
      assert.deepEqual([exitCode, stdout], [0, 'heard one\nheard two\n'])
    })

    test('another client connects to a running process and kills it', async () => {
      const options = { background: true, timeoutMs: 0, stdin: true } as const
      const firstHandle = await sandbox.commands.run('cat', options)
      const otherClient = await Sandbox.connect(sandbox.sandboxId, connection)
      let output = ''
      const secondHandle = await otherClient.commands.connect(firstHandle.pid, {
        onStdout: (chunk) => void (output += chunk),
      })
      await firstHandle.sendStdin('for both')
      await waitFor('the output at the second client', () => output === 'for both', polling)
      assert.equal(await secondHandle.kill(), true)
      await assert.rejects(firstHandle.wait(), /signal: killed/)
      await assert.rejects(secondHandle.wait(), /signal: killed/)
      assert.equal(await sandbox.commands.kill(firstHandle.pid), false)
      await assert.rejects(otherClient.commands.connect(firstHandle.pid + 100_000), NotFoundError)
    })

    test('a terminal takes input and Ctrl-C, is resized and killed', async () => {
      const terminal = await openTerminal(sandbox, { cols: 91, rows: 31 })
      await terminal.waitForText(/user@\S+.*\$ /)
      await terminal.type('stty size; tty\r')
      await terminal.waitForText(/31 91\r\n\/dev\/pts\/\d+\r\n/)
      await terminal.type('echo list""ening; cat\r')
      await terminal.waitForText(/listening\r\n/)
      await terminal.type('echoed\r')
      await terminal.waitForText(/echoed\r\nechoed\r\n/)
      await sandbox.pty.resize(terminal.handle.pid, { cols: 132, rows: 43 })
      await terminal.type('\x03')
      await terminal.waitForText(/\$ /)
      await terminal.type('stty size\r')
      await terminal.waitForText(/43 132\r\n/)
      assert.equal(await sandbox.pty.kill(terminal.handle.pid), true)
      await assert.rejects(terminal.handle.wait(), /signal: killed/)
    })

    test('a program in the foreground notices a resize by itself', async () => {
      const terminal = await openTerminal(sandbox)
      await terminal.waitForText(/\$ /)
      const program = `import os, signal, time
signal.signal(signal.SIGWINCH, lambda *_: print('noticed', *os.get_terminal_size()))
print('list' + 'ening', flush=True)
while True: time.sleep(60)`
      await terminal.type(`python3 -u -c "$(echo ${btoa(program)} | base64 -d)"\r`)
      await terminal.waitForText(/listening/)
      await sandbox.pty.resize(terminal.handle.pid, { cols: 70, rows: 20 })
      await terminal.waitForText(/noticed 70 20/)
      await terminal.type('\x03')
      await terminal.waitForText(/KeyboardInterrupt[^]*\$ /)
      await terminal.type('exit 5\r')
      await assert.rejects(terminal.handle.wait(), /exit status 5/)
    })

    test('sudo gives root without a password, also at a terminal', async () => {
      assert.equal((await sandbox.commands.run('sudo whoami')).stdout, 'root\n')
      assert.equal((await sandbox.commands.run('echo in | sudo tee /root/note')).stdout, 'in\n')
      const terminal = await openTerminal(sandbox)
      await terminal.waitForText(/\$ /)
      await terminal.type('sudo -i\r')
      await terminal.waitForText(/root@\S+.*# /)
      await terminal.type('echo "I am $(whoami), $(cat note), $(stty size)"\r')
      await terminal.waitForText(/I am root, in, 24 80/)
      await sandbox.pty.resize(terminal.handle.pid, { cols: 99, rows: 33 })
      await terminal.type('\r')
      await terminal.waitForText(/# /)
      await waitFor(
        'the new size to reach the inner terminal',
        async () => {
          await terminal.type('echo size: $(stty size).\r')
          return /33 99/.test(await terminal.waitForText(/size: \d+ \d+\./))
        },
        polling,
      )
      await sandbox.pty.kill(terminal.handle.pid)
      await assert.rejects(terminal.handle.wait())
    })

    test('the languages and tools of the base template run', async () => {
      const script = [
        `node -e 'console.log("node", 6 * 7)'`,
        `python -c 'print("python", 6 * 7)'`,
        `python3 -c 'import ssl, json; print("python3", json.dumps([ssl.OPENSSL_VERSION != ""]))'`,
        'git init -q repo && git -C repo rev-parse --is-inside-work-tree',
        'npm --version | grep -qE "^[0-9]+\\." && echo npm',
        'curl --version | grep -q https && echo curl',
      ].join(' && ')
      const { stdout } = await sandbox.commands.run(`cd $(mktemp -d) && ${script}`)
      const lines = ['node 42', 'python 42', 'python3 [true]', 'true', 'npm', 'curl']
      assert.deepEqual(stdout.trim().split('\n'), lines)
    })

    test('sandboxes are listed by pages and found by their metadata', async () => {
      const run = randomUUID()
      const options = { ...connection, metadata: { run } }
      const sandboxes = await Promise.all([Sandbox.create(options), Sandbox.create(options)])
      const pages = Sandbox.list({ ...connection, query: { metadata: { run } }, limit: 1 })
      const firstPage = await pages.nextItems()
      assert.equal(pages.hasNext, true)
      const secondPage = await pages.nextItems()
      assert.equal(pages.hasNext, false)
      assert.deepEqual(
        new Set([...firstPage, ...secondPage].map(({ sandboxId }) => sandboxId)),
        new Set(sandboxes.map(({ sandboxId }) => sandboxId)),
      )
      const pausedQuery = { metadata: { run }, state: ['paused' as const] }
      assert.deepEqual(await Sandbox.list({ ...connection, query: pausedQuery }).nextItems(), [])
      await Promise.all(sandboxes.map((item) => item.kill()))
      const remaining = await Sandbox.list({
        ...connection,
        query: { metadata: { run } },
      }).nextItems()
      assert.deepEqual(remaining, [])
    })

    test('commands of a killed sandbox fail with an error that names the reason', async () => {
      const newSandbox = await Sandbox.create(connection)
      assert.equal(await newSandbox.isRunning(), true)
      const command = await newSandbox.commands.run('sleep 1000', {
        background: true,
        timeoutMs: 0,
      })
      const commandEnd = assert.rejects(
        command.wait(),
        /sandbox was killed or reached its end of life/,
      )
      assert.equal(await newSandbox.kill(), true)
      await commandEnd
      assert.equal(await newSandbox.isRunning(), false)
      await assert.rejects(newSandbox.commands.run('true'), SandboxNotFoundError)
      await assert.rejects(newSandbox.getInfo(), SandboxNotFoundError)
      await assert.rejects(Sandbox.connect(newSandbox.sandboxId, connection), SandboxNotFoundError)
      assert.equal(await newSandbox.kill(), false)
      assert.equal(await Sandbox.kill('iaaaaaaaaaaaaaaaaaaaa', connection), false)
    })

    test('a sandbox ends at its timeout', async () => {
      const newSandbox = await Sandbox.create(connection)
      const command = await newSandbox.commands.run('sleep 1000', {
        background: true,
        timeoutMs: 0,
      })
      const commandEnd = assert.rejects(
        command.wait(),
        /sandbox was killed or reached its end of life/,
      )
      await newSandbox.setTimeout(1000)
      await commandEnd
      await waitFor('the sandbox to be gone', async () => !(await newSandbox.isRunning()), polling)
      await assert.rejects(newSandbox.getInfo(), SandboxNotFoundError)
    })

    test('a server in the sandbox is reachable by its host name, also over WebSocket', async () => {
      const { port } = new URL(installation.url)
      const options = { ...connection, domain: `localhost:${port}` }
      const sandboxByHost = await Sandbox.connect(sandbox.sandboxId, options)
      const host = sandboxByHost.getHost(8000)
      assert.equal(host, `8000-${sandbox.sandboxId}.localhost:${port}`)

      const envs = { SERVER: serverSource, PORT: '8000' }
      const server = await sandboxByHost.commands.run('node -e "$SERVER"', {
        background: true,
        timeoutMs: 0,
        envs,
      })
      await waitFor('the server to listen', () => server.stdout === 'listening\n', polling)

      const page = await fetchAs(host, `${installation.url}/some/path?with=query`)
      assert.equal(page, `GET /some/path?with=query ${host}`)

      const socket = await openWebSocketAs(host, `${installation.url}/chat`)
      socket.write(clientFrame('over and back'))
      const [reply]: Buffer[] = await once(socket, 'data')
      assert.equal(reply?.subarray(2).toString(), 'over and back')
      const socketEnd = once(socket, 'close')
      await server.kill()
      await socketEnd
      await assert.rejects(server.wait(), /signal: killed/)
    })

    test('a wrong key is an AuthenticationError', async () => {
      const wrongKey = { ...connection, apiKey: `e2b_${'0'.repeat(40)}` }
      await assert.rejects(Sandbox.create(wrongKey), AuthenticationError)
    })
  })
}

/** Uses node:http, because fetch and WebSocket do not let the caller set the Host header. */
async function fetchAs(host: string, url: string): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers: { Host: host } }, resolve).once('error', reject)
  })
  assert.equal(response.statusCode, 200)
  return text(response)
}

function openWebSocketAs(host: string, url: string): Promise<Duplex> {
  const headers = {
    Host: host,
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
    'Sec-WebSocket-Version': '13',
  }
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, agent: false }, (response) => {
      reject(new Error(`answered ${response.statusCode} instead of upgrading`))
    })
    request.once('error', reject)
    request.once('upgrade', (_, socket: Duplex) => resolve(socket))
  })
}

/** Puts a short text into one frame. Clients must mask frames; this mask is zero (RFC 6455, 5.2). */
function clientFrame(message: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]),
    Buffer.from(message),
  ])
}
