/** Atoll's command line, run as root on the machine of the server, without settings. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { run, tryRun } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

const polling = { intervalMs: 50 }
const absentId = 'iaaaaaaaaaaaaaaaaaaaa'

let installation: Installation
let sandboxId: string

before(async () => {
  installation = await install()
  const output = await run(atoll, ['sandbox', 'create', '--timeout', '10m'], { env: localEnv() })
  sandboxId = output.trim()
})
after(() => installation[Symbol.asyncDispose]())

/** Unsets key and URLs: the command line reads both from the file that the server keeps for root. */
function localEnv(): NodeJS.ProcessEnv {
  const unset = { E2B_API_URL: undefined, E2B_SANDBOX_URL: undefined, E2B_API_KEY: undefined }
  return { ...installation.env, ...unset }
}

function cli(...args: readonly string[]) {
  return tryRun(atoll, args, { env: localEnv() })
}

function cliWith(env: Record<string, string>, ...args: readonly string[]) {
  return tryRun(atoll, args, { env: { ...localEnv(), ...env } })
}

test('create prints an id that list shows and kill ends', async () => {
  const flags = ['--metadata', 'made=here', '--env', 'WORD=from create']
  const createResult = await cli('sandbox', 'create', ...flags)
  assert.match(createResult.stdout, /^i[a-z0-9]{20}\n$/)
  const id = createResult.stdout.trim()
  const execResult = await cli('sandbox', 'exec', id, 'echo $WORD')
  assert.equal(execResult.stdout, 'from create\n')

  const table = await cli('sandbox', 'list', '--metadata', 'made=here')
  assert.match(table.stdout, new RegExp(`^ID .*\\n${id} +base +running .*\\n$`))
  const json = await cli('sandbox', 'list', '--json')
  const sandboxes: { sandboxID: string }[] = JSON.parse(json.stdout)
  assert.deepEqual(new Set(sandboxes.map(({ sandboxID }) => sandboxID)), new Set([id, sandboxId]))

  assert.deepEqual(await cli('sandbox', 'kill', id), succeeded(`killed ${id}\n`))
  const emptyList = await cli('sandbox', 'list', '--metadata', 'made=here')
  assert.deepEqual([emptyList.code, emptyList.stdout], [0, ''])
  const secondKill = await cli('sandbox', 'kill', id)
  assert.equal(secondKill.code, 1)
  assert.match(secondKill.stderr, new RegExp(`error: Sandbox ${id} was not found: it was killed`))
})

test('a sandbox is paused, resumed, forked and snapshotted, and its processes continue', async () => {
  const id = (await cli('sandbox', 'create', '--timeout', '10m')).stdout.trim()
  // The counter lives in the memory of the shell; the file is a copy to read.
  const counter = 'i=0; while :; do i=$((i+1)); echo $i >/tmp/count; sleep 0.1; done'
  await cli('sandbox', 'exec', id, `setsid bash -c '${counter}' </dev/null >/dev/null 2>&1 &`)
  const count = async (target: string) =>
    Number((await cli('sandbox', 'exec', target, 'cat /tmp/count')).stdout)
  const waitForCount = (target: string, from: number) =>
    waitFor(`${target} to count past ${from}`, async () => (await count(target)) > from, polling)
  await waitForCount(id, 0)

  assert.deepEqual(await cli('sandbox', 'pause', id), succeeded(`paused ${id}\n`))
  assert.deepEqual(await cli('sandbox', 'pause', id), succeeded(`already paused ${id}\n`))
  const pausedList = await cli('sandbox', 'list', '--state', 'paused')
  assert.match(pausedList.stdout, new RegExp(`^ID .*\\n${id} +base +paused .* -\\n$`))
  assert.match((await cli('status')).stdout, /^disk +[1-9]\d* MB in paused sandboxes \(1\)/m)
  const snapshotResult = await cli('snapshot', 'create', id)
  assert.match(snapshotResult.stderr, /is paused.*\nhint: `atoll sandbox resume/)
  const resumeResult = await cli('sandbox', 'resume', '--timeout', '10m', id)
  assert.deepEqual(resumeResult, succeeded(`resumed ${id}\n`))
  const countAfterResume = await count(id)
  await waitForCount(id, countAfterResume)

  const forkResult = await cli('sandbox', 'fork', id, '--count', '2')
  const copies = forkResult.stdout.trim().split('\n')
  assert.equal(copies.length, 2)
  for (const copy of copies) await waitForCount(copy, countAfterResume)
  assert.equal((await cli('sandbox', 'exec', copies[0] ?? '', 'hostname')).stdout.trim(), copies[0])

  const unnamedSnapshot = (await cli('snapshot', 'create', id)).stdout.trim()
  const namedSnapshot = (await cli('snapshot', 'create', id, '--name', 'counting:v1')).stdout.trim()
  assert.match(namedSnapshot, /\/counting:v1$/)
  assert.equal(
    (await cli('snapshot', 'list', '--quiet')).stdout,
    `${namedSnapshot}\n${unnamedSnapshot}\n`,
  )
  const restoredId = (await cli('sandbox', 'create', 'counting:v1')).stdout.trim()
  await waitForCount(restoredId, countAfterResume)
  const deleteResult = await cli('snapshot', 'delete', unnamedSnapshot, namedSnapshot)
  assert.deepEqual([deleteResult.code, deleteResult.stdout], [1, `deleted ${unnamedSnapshot}\n`])
  assert.equal((await cli('sandbox', 'kill', id, ...copies, restoredId)).code, 0)
  assert.deepEqual(await cli('snapshot', 'rm', 'counting'), succeeded('deleted counting\n'))
  assert.equal((await cli('snapshot', 'list')).stdout, '')
})

test('diff shows what a sandbox changed at once, also while it is paused, and follows no link', async () => {
  const id = (await cli('sandbox', 'create', '--timeout', '10m')).stdout.trim()
  const script = [
    // The program keeps its file open and never syncs it.
    'exec 5>/home/user/open; echo unsynced >&5',
    'echo more >>/etc/issue; rm /etc/os-release; rm -r /etc/apt; mkdir /etc/apt',
    'ln -s /etc/shadow /home/user/link; ln -s / /home/user/root',
    'nohup sleep 1000 >/dev/null 2>&1 &',
  ].join('\n')
  assert.equal((await cli('sandbox', 'exec', '--user', 'root', id, script)).code, 0)
  const expected = [
    'A /home/user/link',
    'A /home/user/open',
    'A /home/user/root',
    'D /etc/apt/sources.list.d/',
    'D /etc/os-release',
    'M /etc/issue',
  ]
  const changed = async () => (await cli('sandbox', 'diff', id)).stdout.split('\n')
  const running = await changed()
  for (const line of expected) assert.ok(running.includes(line), `${line} in ${running.join()}`)
  const home = await cli('sandbox', 'diff', id, '/home/user')
  assert.match(home.stdout, /^\+\+\+ b\/home\/user\/open\n@@ -0,0 \+1,1 @@\n\+unsynced$/m)
  assert.match(home.stdout, /^\+\/etc\/shadow\n\\ No newline at end of file$/m)
  assert.equal((await cli('sandbox', 'diff', id, '/home/user/root/etc/shadow')).stdout, '')
  assert.match((await cli('sandbox', 'diff', id, '/etc/issue')).stdout, /^ Debian[^]*^\+more$/m)

  assert.equal((await cli('sandbox', 'pause', id)).code, 0)
  assert.deepEqual(await changed(), running)
  const pausedList = await cli('sandbox', 'list', '--state', 'paused', '--quiet')
  assert.equal(pausedList.stdout.trim(), id)
  assert.equal((await cli('sandbox', 'resume', id)).code, 0)
  assert.equal((await cli('sandbox', 'exec', id, 'cat /home/user/open')).stdout, 'unsynced\n')
  assert.equal((await cli('sandbox', 'kill', id)).code, 0)
})

test('exec passes on output, options and exit codes', async () => {
  const result = await cli('sandbox', 'exec', sandboxId, 'echo out; echo err >&2; exit 42')
  assert.deepEqual([result.code, result.stdout, result.stderr], [42, 'out\n', 'err\n'])
  const argumentsResult = await cli(
    'sandbox',
    'exec',
    sandboxId,
    '--',
    'printf',
    '%s|',
    'a b',
    '$HOME',
  )
  assert.deepEqual(argumentsResult, succeeded('a b|$HOME|'))
  const flags = ['--user', 'root', '--cwd', '/etc', '--env', 'WORD=x y']
  const optionsResult = await cli('sandbox', 'exec', ...flags, sandboxId, 'whoami; pwd; echo $WORD')
  assert.deepEqual(optionsResult, succeeded('root\n/etc\nx y\n'))
  assert.equal((await cli('sandbox', 'exec', sandboxId, 'kill -KILL $$')).code, 137)
  assert.equal((await cli('sandbox', 'exec', sandboxId, '--', 'no-such-program', 'x')).code, 127)
  const timeoutResult = await cli('sandbox', 'exec', '--timeout', '2s', sandboxId, 'sleep 1000')
  assert.deepEqual(
    [timeoutResult.code, timeoutResult.stderr],
    [124, 'command killed: it exceeded the --timeout of 2 s\n'],
  )
})

test('exec forwards stdin up to its end', async () => {
  const input = 'line\n'.repeat(200_000)
  const options = { env: localEnv(), input }
  const counts = await run(atoll, ['sandbox', 'exec', sandboxId, 'wc -c; wc -c'], options)
  assert.equal(counts, `${input.length}\n0\n`)
})

test('exec sends SIGTERM to its command when it is interrupted', async () => {
  const script = 'trap "echo bye; exit 3" TERM; echo started; while :; do sleep 0.1; done'
  const child = spawn(atoll, ['sandbox', 'exec', sandboxId, script], {
    env: localEnv(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const exit = once(child, 'close')
  await waitFor('the command to start', () => output === 'started\n', polling)
  child.kill('SIGINT')
  await exit
  assert.deepEqual([child.exitCode, output], [3, 'started\nbye\n'])
})

test('shell resizes with the window, and restores the terminal at the end', async () => {
  const session = [
    'stty rows 30 cols 90',
    'echo "at $(tty) modes $(stty -g)"',
    `${atoll} sandbox shell ${sandboxId}`,
    'echo "ended $? modes $(stty -g)"',
  ].join('; ')
  // script(1) gives the session a terminal; its stdin is the keyboard.
  const child = spawn('script', ['-qfc', session, '/dev/null'], {
    env: { ...localEnv(), SHELL: '/bin/sh', TERM: 'xterm-256color' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text))
  const exit = once(child, 'close')
  const waitForText = async (pattern: RegExp) => {
    const match = await waitFor(
      `${pattern} on the terminal`,
      () => pattern.exec(screen) ?? undefined,
      polling,
    ).catch((cause: unknown) => {
      throw new Error(`no ${pattern} in ${JSON.stringify(screen)}`, { cause })
    })
    screen = screen.slice(match.index + match[0].length)
    return match
  }
  const [, device = '', modes] = await waitForText(/at (\S+) modes (\S+)/)
  await waitForText(/user@\S+.*\$ /)
  child.stdin.write('stty size; echo $TERM\r')
  await waitForText(/30 90\r\nxterm-256color\r\n/)
  // Resizes often, like a window that is dragged: the last size counts.
  for (let rows = 41; rows <= 50; rows += 1) {
    await run('stty', ['-F', device, 'rows', String(rows), 'cols', String(rows + 70)])
  }
  await waitFor(
    'the last size',
    async () => {
      child.stdin.write('echo size: $(stty size).\r')
      return (await waitForText(/size: (\d+ \d+)\./))[1] === '50 120'
    },
    polling,
  )
  child.stdin.write('echo list""ening; cat\r')
  await waitForText(/listening\r\n/)
  child.stdin.write('typed\r')
  await waitForText(/typed\r\ntyped\r\n/)
  child.stdin.write('\x03')
  await waitForText(/\$ /)
  child.stdin.write('exit 3\r')
  const [, code, modesAfter] = await waitForText(/ended (\d+) modes (\S+)/)
  assert.deepEqual([code, modesAfter], ['3', modes])
  await exit
})

test('shell without a terminal fails and suggests exec', async () => {
  const result = await cli('sandbox', 'shell', sandboxId)
  assert.equal(result.code, 1)
  assert.match(result.stderr, /needs a terminal[^]*hint: .*atoll sandbox exec/)
})

test('a key works after its creation and fails after its deletion', async () => {
  const createResult = await cli('key', 'create', 'for a test', '--json')
  const { id, key }: { id: string; key: string } = JSON.parse(createResult.stdout)
  assert.match(key, /^e2b_[0-9a-f]{40}$/)
  const keyEnv = { ATOLL_API_KEY: key, ATOLL_API_URL: installation.url }
  assert.match((await cliWith(keyEnv, 'sandbox', 'list')).stdout, new RegExp(sandboxId))

  const list = await cli('key', 'list')
  assert.match(list.stdout, new RegExp(`${id} +for a test +e2b_${key.slice(4, 6)}\\.\\.\\.`))
  assert.ok(!list.stdout.includes(key))

  assert.equal((await cli('key', 'delete', id)).code, 0)
  const result = await cliWith(keyEnv, 'sandbox', 'list')
  assert.equal(result.code, 1)
  assert.match(result.stderr, /error: The API key [^]*hint: check ATOLL_API_KEY/)
  assert.ok(!(await cli('key', 'list')).stdout.includes(id))
})

test('key show prints the key of the local server and nothing else', async () => {
  assert.deepEqual(await cli('key', 'show'), succeeded(`${installation.apiKey}\n`))
})

test('status and doctor report a healthy installation', async () => {
  const status = await cli('status')
  assert.equal(status.code, 0)
  assert.match(status.stdout, /server +up\n/)
  assert.ok(status.stdout.includes(installation.url))
  assert.match(status.stdout, /running +1\n/)
  const doctor = await cli('doctor')
  assert.equal(doctor.code, 0, doctor.stdout)
  assert.match(doctor.stdout, /^ok +gVisor +ran a program$/m)
  assert.match(doctor.stdout, /Atoll can run here\.\n$/)
})

test('each mistake has its own message with advice', async () => {
  const wrongKey = await cliWith({ ATOLL_API_KEY: 'e2b_wrong' }, 'sandbox', 'list')
  assert.equal(wrongKey.code, 1)
  assert.match(wrongKey.stderr, /^error: The API key .*\nhint: check ATOLL_API_KEY/)

  const url = `http://127.0.0.1:${await freePort()}`
  const noServerEnv = { ATOLL_API_URL: url, ATOLL_API_KEY: installation.apiKey }
  const noServer = await cliWith(noServerEnv, 'sandbox', 'list')
  assert.equal(noServer.code, 1)
  assert.match(noServer.stderr, new RegExp(`^error: no server at ${url}: start it`))
  assert.equal((await cliWith(noServerEnv, 'status')).code, 1)

  const noSandbox = await cli('sandbox', 'exec', absentId, 'true')
  assert.equal(noSandbox.code, 1)
  assert.match(noSandbox.stderr, /^error: Sandbox \S+ was not found\nhint: `atoll sandbox list`/)

  assert.equal((await cli('sandbox', 'exec', sandboxId)).code, 2)
  assert.equal((await cli('sandbox', 'frobnicate')).code, 2)
})

function succeeded(stdout: string) {
  return { code: 0, signal: null, stdout, stderr: '' }
}
