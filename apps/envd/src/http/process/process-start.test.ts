import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import { begin, byPid, codeOf, collect, shell } from '../../testing/process-calls.ts'
import { runEnvd } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

for (const binary of [false, true]) {
  test(`a command's output and exit code arrive, binary ${binary}`, async () => {
    await using envd = await runEnvd({ binary })
    const seen = await collect(envd.client.start(shell('echo out; echo err >&2; exit 3')))
    assert.deepEqual([seen.stdout, seen.stderr], ['out\n', 'err\n'])
    const status = 'exit status 3'
    assert.deepEqual(seen.end, { exitCode: 3, exited: true, status, error: status })
    assert.equal(seen.kinds[0], 'start')
    assert.equal(seen.kinds.at(-1), 'end')
    assert.ok(seen.pid > 0)
  })
}

const ends = [
  { script: 'exit 0', end: { exitCode: 0, exited: true, status: 'exit status 0' } },
  { script: 'kill -9 $$', end: signalled('killed') },
  { script: 'kill -15 $$', end: signalled('terminated') },
  { script: 'kill -11 $$', end: signalled('segmentation fault') },
]

function signalled(name: string) {
  const text = `signal: ${name}`
  return { exitCode: -1, exited: false, status: text, error: text }
}

test('the end event distinguishes exits and signals', async () => {
  await using envd = await runEnvd()
  for (const { script, end } of ends) {
    assert.deepEqual((await collect(envd.client.start(shell(script)))).end, end)
    const onTerminal = await collect(envd.client.start({ ...shell(script), pty: size(80, 24) }))
    assert.deepEqual(onTerminal.end, end)
  }
})

function size(cols: number, rows: number) {
  return { size: { cols, rows } }
}

test('a missing command exits with 127', async () => {
  await using envd = await runEnvd()
  const seen = await collect(envd.client.start({ process: { cmd: 'no-such-command' } }))
  assert.equal(seen.end?.exitCode, 127)
  assert.match(seen.stderr, /not found/)
})

test('a process gets the identity, home and groups of the user in Basic authorization', async () => {
  await using envd = await runEnvd()
  const script = 'id -u; id -g; id -G; echo $HOME $USER $LOGNAME; cat /proc/self/oom_score_adj'
  const request = shell(script, { cwd: '/' })
  const seen = await collect(envd.client.start(request, envd.as('daemon')))
  assert.equal(seen.stdout, '1\n1\n1\n/usr/sbin daemon daemon\n100\n')
  const root = await collect(envd.client.start(request))
  assert.match(root.stdout, /^0\n0\n/)
})

test('groups come from the group file, the primary one first', async () => {
  await using envd = await runEnvd({
    accounts: {
      passwd: join(import.meta.dirname, '../../testing/accounts/passwd'),
      group: join(import.meta.dirname, '../../testing/accounts/group'),
    },
  })
  const seen = await collect(envd.client.start(shell('id -G; pwd'), envd.as('anna')))
  assert.equal(seen.stdout, '4242 4300 4301\n/tmp\n')
})

test('the environment contains only PATH, user, global and request variables', async () => {
  await using envd = await runEnvd()
  const envVars = { GREETING: 'global', KEPT: 'yes', E2B_SANDBOX: 'forged' }
  await envd.init({ sandboxId: 'isandbox', templateId: 'base', envVars, accessToken: 'other' })
  const headers = { 'x-access-token': 'other' }
  const process = { cmd: '/usr/bin/env', envs: { GREETING: 'mine', USER: 'chosen' } }
  const seen = await collect(envd.client.start({ process }, { headers }))
  assert.deepEqual(seen.stdout.trim().split('\n').toSorted(), [
    'E2B_SANDBOX=true',
    'E2B_SANDBOX_ID=isandbox',
    'E2B_TEMPLATE_ID=base',
    'GREETING=mine',
    'HOME=/root',
    'KEPT=yes',
    'LOGNAME=root',
    'PATH=/usr/local/bin:/usr/bin:/bin',
    'USER=chosen',
  ])
  const mirrored = await readFile(join(envd.folder, 'variables/.E2B_SANDBOX_ID'), 'utf8')
  assert.equal(mirrored, 'isandbox')
})

test('a relative cwd starts at home, an empty one is the default workdir', async () => {
  await using envd = await runEnvd()
  await envd.init({ accessToken: 'token-of-this-sandbox', defaultWorkdir: '/usr/share' })
  const pwd = async (cwd?: string) =>
    (await collect(envd.client.start(shell('pwd', { cwd }), envd.as('daemon')))).stdout.trim()
  assert.equal(await pwd(), '/usr/share')
  assert.equal(await pwd(''), '/usr/share')
  assert.equal(await pwd('~'), '/usr/sbin')
  assert.equal(await pwd('../bin'), '/usr/bin')
  assert.equal(await pwd('/etc'), '/etc')
})

const refused: { what: string; request: object; user?: string; code: Code }[] = [
  {
    what: 'a missing cwd',
    request: shell('true', { cwd: '/no/such' }),
    code: Code.InvalidArgument,
  },
  {
    what: 'a file as cwd',
    request: shell('true', { cwd: '/etc/passwd' }),
    code: Code.InvalidArgument,
  },
  { what: '~name as cwd', request: shell('true', { cwd: '~root' }), code: Code.InvalidArgument },
  {
    what: 'a cwd that the user may not enter',
    request: shell('true', { cwd: '/root' }),
    user: 'nobody',
    code: Code.InvalidArgument,
  },
  { what: 'an empty command', request: {}, code: Code.InvalidArgument },
  { what: 'a NUL in an argument', request: shell('a\0b'), code: Code.InvalidArgument },
  {
    what: 'a variable without a name',
    request: shell('true', { envs: { '': 'x' } }),
    code: Code.InvalidArgument,
  },
  {
    what: 'an argument that exec cannot take',
    request: shell('x'.repeat(140_000)),
    code: Code.InvalidArgument,
  },
  { what: 'an unknown user', request: shell('true'), user: 'ghost', code: Code.Unauthenticated },
]

test('invalid starts are rejected with the right code, and nothing runs', async (t) => {
  await using envd = await runEnvd()
  for (const { what, request, user, code } of refused) {
    await t.test(what, async () => {
      const options = user === undefined ? {} : envd.as(user)
      assert.equal(await codeOf(collect(envd.client.start(request, options))), code)
      assert.deepEqual((await envd.client.list({})).processes, [])
    })
  }
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('a default user that does not exist is unauthenticated', async () => {
  await using envd = await runEnvd()
  await envd.init({ accessToken: 'token-of-this-sandbox', defaultUser: 'ghost' })
  assert.equal(await codeOf(collect(envd.client.start(shell('true')))), Code.Unauthenticated)
})

test('a missing guest program makes starts fail without a crash', async () => {
  await using envd = await runEnvd({ guestProgram: '/no/such/guest' })
  assert.equal(await codeOf(collect(envd.client.start(shell('true')))), Code.InvalidArgument)
  await envd.client.list({})
})

test('stdin is a pipe, or /dev/null if disabled', async () => {
  await using envd = await runEnvd()
  const off = await collect(envd.client.start(shell('readlink /proc/self/fd/0; cat')))
  assert.equal(off.stdout, '/dev/null\n')
  const { pid, rest } = await begin(envd.client.start({ process: { cmd: 'cat' } }))
  const selector = byPid(pid)
  const stdin = new TextEncoder().encode('hello\n')
  await envd.client.sendInput({
    process: selector,
    input: { input: { case: 'stdin', value: stdin } },
  })
  await envd.client.closeStdin({ process: selector })
  const seen = await collect(rest)
  assert.deepEqual([seen.stdout, seen.end?.exitCode], ['hello\n', 0])
})

test('a terminal process has the requested size, its own session and only its own descriptors', async () => {
  await using envd = await runEnvd()
  const script = 'tty; stty size; ps -o sid= -p $$ | tr -d " "; echo $$; env | grep -c TERM'
  const seen = await collect(envd.client.start({ ...shell(script), pty: size(91, 33) }))
  const [tty, dimensions, session, pid, terms] = seen.pty.split('\r\n')
  assert.match(tty ?? '', /^\/dev\/pts\//)
  assert.deepEqual([dimensions, session, terms], ['33 91', pid, '0'])
  assert.equal(seen.pid, Number(pid))
})

test('output is complete, in chunks of bounded size', async () => {
  await using envd = await runEnvd()
  const script = 'head -c 3000000 /dev/zero | tr "\\0" a; head -c 300000 /dev/zero | tr "\\0" b >&2'
  const piped = await collect(envd.client.start(shell(script)))
  assert.deepEqual([piped.stdout.length, piped.stderr.length], [3_000_000, 300_000])
  assert.ok(piped.largest <= 32 * 1024)
  const onTerminal = await collect(envd.client.start({ ...shell(script), pty: size(80, 24) }))
  assert.equal(onTerminal.pty.length, 3_300_000)
  assert.ok(onTerminal.largest <= 16 * 1024)
})

test('an idle stream sends keepalives at the requested interval', async () => {
  await using envd = await runEnvd()
  const headers = { 'keepalive-ping-interval': '1' }
  const process = { cmd: 'cat' }
  const { pid, rest } = await begin(envd.client.start({ process }, { headers }))
  const next = await rest.next()
  assert.equal(next.value.event.event.case, 'keepalive')
  await kill(envd, pid)
  assert.equal((await collect(rest)).end?.status, 'signal: killed')
})

async function kill(envd: RunningEnvd, pid: number): Promise<void> {
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL })
}
