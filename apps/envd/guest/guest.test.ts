import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { tryRun, type RunResult } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { buildGuest, startTestSandbox, type Guest } from './test-sandbox.ts'

let guest: Guest
before(async () => {
  guest = await buildGuest()
})
after(() => guest[Symbol.asyncDispose]())

const identity = ['--uid', '61000', '--gid', '61000']

function exec(options: readonly string[], command: readonly string[]): Promise<RunResult> {
  return tryRun(guest.program, ['exec', ...options, '--', ...command])
}

test('exec switches to the user, groups and directory', async () => {
  const script = 'id -u; id -g; id -G; pwd; cat /proc/self/oom_score_adj'
  const options = [...identity, '--groups', '61000,27,28', '--cwd', '/usr', '--oom', '321']
  const result = await exec(options, ['sh', '-c', script])
  assert.equal(result.stdout, '61000\n61000\n61000 27 28\n/usr\n321\n')
})

test('exec keeps the pid and passes the environment through untouched', async () => {
  const env = { PATH: '/usr/bin:/bin', ODD: 'a=b c' }
  const script = 'echo $$; exec "$0" exec --uid 61000 --gid 61000 -- sh -c "echo \\$\\$; env"'
  const result = await tryRun('sh', ['-c', script, guest.program], { env, cwd: '/' })
  const [shellPid, commandPid, ...rest] = result.stdout.trim().split('\n')
  assert.equal(shellPid, commandPid)
  assert.deepEqual(rest.filter((line) => !/^(PWD|_|SHLVL|OLDPWD)=/.test(line)).toSorted(), [
    'LC_ALL=C.UTF-8', // set by tryRun
    'ODD=a=b c',
    'PATH=/usr/bin:/bin',
  ])
})

test('exec resets blocked and ignored signals', async () => {
  const script = `trap '' INT TERM HUP; exec "$0" exec --uid 0 --gid 0 -- cat /proc/self/status`
  const result = await tryRun('sh', ['-c', script, guest.program])
  assert.match(result.stdout, /SigBlk:\t0{16}\nSigIgn:\t0{16}\n/)
})

test('a command can reopen its standard output, although root created the pipe', async () => {
  const result = await tryRun('sh', [
    '-c',
    '"$0" exec --uid 61000 --gid 61000 -- sh -c "echo again > /dev/stdout" | cat',
    guest.program,
  ])
  assert.equal(result.stdout, 'again\n')
})

const onX64 = { skip: process.arch === 'x64' ? false : 'no other processor has the instruction' }
test('gvisor-start blocks CPUID faulting and nothing else', onX64, async () => {
  const ask = `use Errno;
for my $code (${archSetCpuid}, ${archGetCpuid}) {
  print syscall(${archPrctl}, $code, 0) < 0 ? $!{ENODEV} ? "no device" : $! : "fine", "\n";
}`
  const hidden = await tryRun(guest.program, ['gvisor-start', 'perl', '-e', ask])
  assert.equal(hidden.stdout, 'no device\nfine\n', hidden.stderr)
})

test('gvisor-start reports a missing command', async () => {
  const [nothing, unknown] = await Promise.all([
    tryRun(guest.program, ['gvisor-start']),
    tryRun(guest.program, ['gvisor-start', '/no/such']),
  ])
  assert.deepEqual([nothing.code, nothing.stderr], [126, 'gvisor-start: no command\n'])
  assert.deepEqual([unknown.code, unknown.stderr], [127, '/no/such: No such file or directory\n'])
})

test('`gvisor-start` lowers the priority of every thread', async () => {
  const program = spawn(guest.program, [
    'gvisor-start',
    process.execPath,
    '-e',
    'process.stdin.resume()',
  ])
  try {
    const pid = program.pid ?? 0
    await waitFor('its threads', async () => (await threadsOf(pid)).length > 5)
    const own = getPriority()
    assert.deepEqual(await priorities(pid), [Math.min(own + 10, 19)])
  } finally {
    program.kill('SIGKILL')
  }
})

function threadsOf(pid: number): Promise<string[]> {
  return readdir(`/proc/${pid}/task`)
}

/** Returns the distinct priorities of the threads. */
async function priorities(pid: number): Promise<number[]> {
  const texts = (await threadsOf(pid)).map((id) => readFile(`/proc/${pid}/task/${id}/stat`, 'utf8'))
  // The priority is field 19. The program name, field 2, may contain spaces.
  const found = (await Promise.all(texts)).map((text) => text.replace(/^.*\) /, '').split(' ')[16])
  return [...new Set(found.map(Number))]
}

/** Numbers of x86-64. */
const [archPrctl, archSetCpuid, archGetCpuid] = [158, 0x1012, 0x1011]

const failures = [
  { what: 'an unknown command', options: identity, command: ['nosuch'], code: 127 },
  { what: 'an unknown path', options: identity, command: ['/no/such'], code: 127 },
  { what: 'a file that is no program', options: identity, command: ['/etc/passwd'], code: 126 },
  { what: 'a folder', options: identity, command: ['/usr'], code: 126 },
  {
    what: 'a missing directory',
    options: [...identity, '--cwd', '/no'],
    command: ['id'],
    code: 126,
  },
  { what: 'no identity', options: [], command: ['id'], code: 126 },
  { what: 'uid -1', options: ['--uid', '-1', '--gid', '1'], command: ['id'], code: 126 },
  {
    what: 'uid 2^32-1',
    options: ['--uid', '4294967295', '--gid', '1'],
    command: ['id'],
    code: 126,
  },
  { what: 'no command', options: identity, command: [], code: 126 },
  {
    what: 'too many groups',
    options: [...identity, '--groups', Array(65).fill('1').join(',')],
    command: ['id'],
    code: 126,
  },
] as const

for (const { what, options, command, code } of failures) {
  test(`exec rejects ${what} with ${code} and a message`, async () => {
    const result = await exec(options, command)
    assert.equal(result.code, code)
    assert.equal(result.stdout, '')
    assert.match(result.stderr, code === 127 ? /: command not found\n$/ : /\n$/)
  })
}

test('exec runs a script without a #! line with sh', async () => {
  const script = 'printf "echo \\$1" > s && chmod 755 s && exec "$0" exec --uid 0 --gid 0 -- ./s hi'
  const result = await tryRun('sh', ['-c', script, guest.program], { cwd: guest.directory })
  assert.equal(result.stdout, 'hi\n')
})

test('fifos creates the requested number of pipes for root only', async () => {
  const folder = join(guest.directory, 'pipes')
  await mkdir(folder)
  const result = await tryRun(guest.program, ['fifos', join(folder, '7-'), '3'])
  assert.deepEqual([result.code, result.stderr], [0, ''])
  const names = (await readdir(folder)).toSorted()
  assert.deepEqual(names, ['7-0', '7-1', '7-2'])
  for (const name of names) {
    const { mode, uid } = await stat(join(folder, name))
    assert.deepEqual([mode, uid], [0o010600, 0])
  }
})

test('fifos creates all pipes or none', async () => {
  const folder = join(guest.directory, 'pipes-in-the-way')
  await mkdir(folder)
  await writeFile(join(folder, '7-2'), '')
  const result = await tryRun(guest.program, ['fifos', join(folder, '7-'), '4'])
  assert.equal(result.code, 1)
  assert.match(result.stderr, /7-2: File exists\n$/)
  assert.deepEqual(await readdir(folder), ['7-2'])
})

for (const args of [[], ['x'], ['x', '-1'], ['x', '257'], ['x', '1', '2'], ['x', '']]) {
  test(`fifos rejects the arguments ${JSON.stringify(args)}`, async () => {
    const result = await tryRun(guest.program, ['fifos', ...args], { cwd: guest.directory })
    assert.equal(result.code, 2)
    assert.match(result.stderr, /at most 256\n$/)
  })
}

test('init restarts the daemon with increasing delays', async () => {
  const log = join(guest.directory, 'starts')
  await using _standIn = await startTestSandbox(
    guest,
    ['sh', '-c', `date +%s%3N >> ${log}; exit 1`],
    {
      sudo: false,
    },
  )
  const starts = await waitFor('four starts', async () => {
    const lines = (await readFile(log, 'utf8').catch(() => '')).trim().split('\n')
    return lines.length >= 4 && lines.map(Number)
  })
  const [first = 0, second = 0, third = 0, fourth = 0] = starts
  const pauses = [second - first, third - second, fourth - third]
  for (const [i, least] of [100, 200, 400].entries()) {
    assert.ok((pauses[i] ?? 0) >= least && (pauses[i] ?? 0) < least + 1500, String(pauses))
  }
})

test('init passes no descriptors or blocked signals to the daemon', async () => {
  const log = join(guest.directory, 'inherited')
  const script = `ls -l /proc/self/fd | grep -o '[0-9]* -> .*' > ${log}; grep Sig /proc/self/status >> ${log}; echo end >> ${log}; exec sleep 100`
  await using _standIn = await startTestSandbox(guest, ['sh', '-c', script])
  const text = await waitFor('the list', async () => {
    const now = await readFile(log, 'utf8').catch(() => '')
    return now.endsWith('end\n') && now
  })
  const numbers = [...text.matchAll(/^(\d+) ->/gm)].map((match) => match[1])
  assert.deepEqual(numbers, ['0', '1', '2', '3'])
  assert.match(text, /^0 -> \/dev\/null$/m)
  assert.match(text, /^3 -> \/proc\/\d+\/fd$/m)
  assert.match(text, /SigBlk:\t0{16}\nSigIgn:\t0{16}/)
})

test('init reaps orphans, more than one batch of them', async () => {
  await using sandbox = await startTestSandbox(guest, ['sleep', '100'], { sudo: false })
  const orphans = 'for i in $(seq 150); do (sh -c "sleep 0.1; exit 3" &); done'
  assert.equal((await sandbox.as('root', ['sh', '-c', orphans])).code, 0)
  await waitFor('only init, its daemon and ps', async () => {
    const { stdout } = await sandbox.as('root', ['ps', '-eo', 'comm='])
    return stdout.trim().split('\n').join() === 'guest,sleep,ps'
  })
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`init forwards ${signal} as SIGTERM and exits with 0`, async () => {
    const log = join(guest.directory, `farewell-${signal}`)
    const script = `trap 'echo told > ${log}; exit' TERM; echo up > ${log}; while :; do sleep 0.02; done`
    await using sandbox = await startTestSandbox(guest, ['sh', '-c', script])
    await waitFor(
      'the daemon',
      async () => (await readFile(log, 'utf8').catch(() => '')) === 'up\n',
    )
    process.kill(sandbox.pid, signal)
    assert.equal(await sandbox.ended, 0)
    assert.equal(await readFile(log, 'utf8'), 'told\n')
  })
}

test('init exits even if a process ignores SIGTERM', async () => {
  const log = join(guest.directory, 'stubborn')
  const script = `trap '' TERM; echo up > ${log}; while :; do sleep 0.02; done`
  await using sandbox = await startTestSandbox(guest, ['sh', '-c', script])
  await waitFor('the daemon', async () => (await readFile(log, 'utf8').catch(() => '')) === 'up\n')
  process.kill(sandbox.pid, 'SIGTERM')
  assert.equal(await sandbox.ended, 0)
})
