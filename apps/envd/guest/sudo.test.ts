import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import {
  buildGuest,
  startTestSandbox,
  type Guest,
  type TestSandbox,
  type User,
} from './test-sandbox.ts'

let guest: Guest
let sandbox: TestSandbox
/** Prints when it is ready, continued or resized. */
let watcher: string
before(async () => {
  guest = await buildGuest()
  watcher = join(guest.directory, 'watcher')
  await run('musl-gcc', ['-static', '-o', watcher, join(import.meta.dirname, 'testing/watcher.c')])
  sandbox = await startTestSandbox(guest, ['sleep', '1000'])
  await waitFor('the service', async () => (await sudo('root', 'true')).code === 0)
})
after(async () => {
  await sandbox[Symbol.asyncDispose]()
  await guest[Symbol.asyncDispose]()
})

const sudo = (user: User, ...args: string[]) => sandbox.as(user, ['sudo', ...args])
const shell = (user: User, script: string, input?: string) =>
  sandbox.as(user, ['sh', '-c', script], input)

const identities = [
  { args: ['id'], who: 'uid=0(root) gid=0(root) groups=0(root)' },
  {
    args: ['-u', 'other', 'id'],
    who: 'uid=61001(other) gid=61001(other) groups=61001(other),29(extra)',
  },
  {
    args: ['-u#61001', 'id'],
    who: 'uid=61001(other) gid=61001(other) groups=61001(other),29(extra)',
  },
  { args: ['--user=other', '-nH', 'id', '-un'], who: 'other' },
  {
    args: ['-g', 'wheel', 'id'],
    who: 'uid=61000(user) gid=28(wheel) groups=28(wheel),27(sudo),61000(user)',
  },
] as const

for (const { args, who } of identities) {
  test(`sudo ${args.join(' ')} runs as ${who}`, async () => {
    const result = await sudo('user', ...args)
    assert.deepEqual([result.stdout.trim(), result.stderr, result.code], [who, '', 0])
  })
}

const refusals = [
  { user: 'other', args: ['id'], says: 'sudo: other is not allowed to use sudo' },
  { user: 'other', args: ['-l'], says: 'sudo: other is not allowed to use sudo' },
  { user: 'unlisted', args: ['id'], says: 'sudo: uid 61002 is not allowed to use sudo' },
  { user: 'user', args: ['-u', 'ghost', 'id'], says: 'sudo: unknown user ghost' },
  { user: 'user', args: ['-u', '#-1', 'id'], says: 'sudo: unknown user #-1' },
  { user: 'user', args: ['-u', '#4294967295', 'id'], says: 'sudo: unknown user #4294967295' },
  { user: 'user', args: ['-g', 'ghosts', 'id'], says: 'sudo: unknown group ghosts' },
  { user: 'user', args: ['nosuch'], says: 'sudo: nosuch: command not found' },
  { user: 'user', args: ['-D', '/no', 'id'], says: 'sudo: /no: No such file or directory' },
  { user: 'user', args: ['-b', 'id'], says: 'sudo: option -b is not supported' },
  {
    user: 'user',
    args: ['echo', 'x'.repeat(130_000), 'y'.repeat(2000)],
    says: 'sudo: argument list too long',
  },
  {
    user: 'user',
    args: ['echo', ...Array<string>(1100).fill('x')],
    says: 'sudo: argument list too long',
  },
] as const

for (const { user, args, says } of refusals) {
  test(`sudo ${args.join(' ').slice(0, 30)} by ${user} is rejected: ${says}`, async () => {
    const result = await sudo(user, ...args)
    assert.deepEqual([result.stdout, result.stderr, result.code], ['', `${says}\n`, 1])
  })
}

test('membership by primary group allows sudo', async () => {
  const result = await sudo('member', 'id', '-u')
  assert.deepEqual([result.stdout, result.code], ['0\n', 0])
})

test('root in a user namespace may not use sudo', async () => {
  const result = await sandbox.as('other', ['unshare', '-Ur', 'sudo', 'id'])
  assert.deepEqual(
    [result.stdout, result.stderr, result.code],
    ['', 'sudo: other is not allowed to use sudo\n', 1],
  )
})

test('invalid options print the usage', async () => {
  for (const args of [[], ['-Z', 'id'], ['--nosuch', 'id'], ['-u']]) {
    const result = await sudo('user', ...args)
    assert.equal(result.code, 1)
    assert.match(result.stderr, /usage: sudo/)
  }
})

test('password options are accepted and ignored', async () => {
  const result = await sudo('user', '-nSAkp', 'Password: ', 'echo', 'done')
  assert.equal(result.stdout, 'done\n')
  for (const option of ['-k', '-K', '-v', '-l', '-V', '-h']) {
    assert.equal((await sudo('user', option)).code, 0, option)
  }
})

test('the environment is that of the target user plus the variables that sudo keeps', async () => {
  const result = await shell('user', 'LC_ALL=C SECRET=1 HOME=/x sudo GIVEN="a b" -u other env')
  assert.deepEqual(result.stdout.trim().split('\n').toSorted(), [
    'GIVEN=a b',
    'HOME=/tmp',
    'LC_ALL=C',
    'LOGNAME=other',
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'SHELL=/bin/sh',
    'SUDO_COMMAND=/usr/bin/env',
    'SUDO_GID=61000',
    'SUDO_UID=61000',
    'SUDO_USER=user',
    'TERM=dumb',
    'USER=other',
  ])
})

const kept = [
  { args: '-E', shows: '1,2,/x' },
  { args: '-EH', shows: '1,2,/root' },
  { args: '--preserve-env=A,HOME', shows: '1,,/x' },
  { args: 'A=3', shows: '3,,/root' },
  { args: '-E A=3', shows: '3,2,/x' },
  { args: '-E -- ', shows: '1,2,/x' },
] as const

for (const { args, shows } of kept) {
  test(`sudo ${args} keeps ${shows}`, async () => {
    const result = await shell('user', `A=1 B=2 HOME=/x sudo ${args} sh -c 'echo $A,$B,$HOME'`)
    assert.equal(result.stdout.trim(), shows)
  })
}

test("-i runs a login shell at home, -s the caller's shell; both quote arguments", async () => {
  const login = await sudo('user', '-iu', 'other', 'echo', '$0', 'a  b', "'c'", '$HOME')
  assert.equal(login.stdout, "-sh a  b 'c' /tmp\n")
  const plain = await shell('user', "SHELL=/bin/bash sudo -s echo '$0' 'a;b'")
  assert.equal(plain.stdout, '/bin/bash a;b\n')
  const directory = await sudo('user', '-i', 'pwd')
  assert.equal(directory.stdout, '/root\n')
})

test('pipes, directory, umask and exit code pass through', async () => {
  const script = 'umask 077; sudo sh -c "cat; pwd; umask; echo oops >&2; exit 7"; echo "code $?"'
  const result = await shell('user', script, 'some input\n')
  assert.equal(result.stdout, `some input\n${guest.directory}\n0077\ncode 7\n`)
  assert.equal(result.stderr, 'oops\n')
})

test('the command inherits only its three standard descriptors', async () => {
  const result = await sudo('user', 'ls', '/proc/self/fd')
  assert.equal(result.stdout, '0\n1\n2\n3\n')
})

test('closed standard descriptors are handled', async () => {
  const result = await shell(
    'user',
    'sudo id -u <&- 2>&-; sudo sh -c "exit 4" <&- >&- 2>&-; echo $?',
  )
  assert.equal(result.stdout, '0\n4\n')
})

test('sudo ends by the signal that ended its command', async () => {
  const result = await sudo('user', 'sh', '-c', 'kill -USR1 $$')
  const reported = await shell('user', `sudo sh -c 'kill -KILL $$'; echo $?`)
  assert.ok(result.signal === 'SIGUSR1' || result.code === 128 + 10, JSON.stringify(result))
  assert.equal(reported.stdout, '137\n')
})

test('sudo forwards signals to the process group of the command', async () => {
  for (const signal of ['INT', 'TERM', 'HUP', 'QUIT', 'USR1', 'USR2']) {
    const script = `
      exec 3>&1
      sudo sh -c 'trap "kill \\$!; echo got ${signal}; exit 9" ${signal}; echo ready; sleep 50 & wait' |
        while read word rest; do
          echo $word $rest >&3
          [ $word = ready ] && pkill -${signal} -u user -x sudo
        done`
    const { stdout } = await shell('user', script)
    assert.equal(stdout, `ready\ngot ${signal}\n`)
  }
})

test('killing sudo sends SIGHUP to its command', async () => {
  const script = `sudo sleep 4321 & while ! pgrep -f '^sleep 4321'; do :; done; kill -KILL $!`
  await shell('user', script)
  await waitFor('the end of sleep', async () => {
    const found = await sandbox.as('root', ['pgrep', '-f', '^sleep 4321'])
    return found.code === 1
  })
})

test('sudo at a terminal handles size, job control and exit code, and restores the terminal', async () => {
  using terminal = sandbox.terminal('user', 'PS1=OUT\\> bash --norc -i')
  await terminal.shows(/OUT>/)
  terminal.type('stty rows 33 cols 101; tty\n')
  const outer = await terminal.shows(/\r(?:\n)?(\/dev\/pts\/\d+)/)
  terminal.type('sudo PS1=IN\\> bash --norc\n')
  await terminal.shows(/IN>/)
  terminal.type('tty; stty size; id -u\n')
  assert.notEqual(await terminal.shows(/(\/dev\/pts\/\d+)/), outer)
  await terminal.shows(/33 101\r\n0\r\n/)

  terminal.type(`${watcher}\n`)
  await terminal.shows(/ready/)
  terminal.type('\x1a')
  await terminal.shows(/Stopped/)
  terminal.type('fg\n')
  await terminal.shows(/again/)
  await sandbox.as('root', ['stty', '-F', outer, 'rows', '44', 'cols', '120'])
  await terminal.shows(/44 120/)
  terminal.type('\x03')
  await terminal.shows(/IN>/)
  terminal.type('echo code $?\n')
  await terminal.shows(/code 130/)
  terminal.type('exit 5\n')
  await terminal.shows(/OUT>/)
  terminal.type('echo code $?; stty -a\n')
  await terminal.shows(/code 5/)
  await terminal.shows(/[^-]icanon/)
})

test('sudo at a terminal stops and continues with its command', async () => {
  using terminal = sandbox.terminal('user', 'PS1=OUT\\> bash --norc -i')
  await terminal.shows(/OUT>/)
  terminal.type(`sudo ${watcher}\n`)
  await terminal.shows(/ready/)
  terminal.type('\x1a')
  await terminal.shows(/Stopped/)
  terminal.type('stty -a; fg\n')
  await terminal.shows(/[^-]icanon/)
  await terminal.shows(/again/)
  terminal.type('\x03')
  await terminal.shows(/OUT>/)
  terminal.type('echo code $?\n')
  await terminal.shows(/code 130/)
})

test('only terminal descriptors are replaced by the new terminal', async () => {
  const file = join(guest.directory, 'redirected')
  await shell('root', `touch ${file}; chmod 666 ${file}`)
  using terminal = sandbox.terminal('user', 'PS1=OUT\\> bash --norc -i')
  await terminal.shows(/OUT>/)
  terminal.type(
    `sudo sh -c 'test -t 0 && test -t 2 && ! test -t 1 && echo file' > ${file}; echo "d"one\n`,
  )
  await terminal.shows(/done/)
  assert.equal(await readFile(file, 'utf8'), 'file\n')
  terminal.type('sudo seq 30000 | tail -1; echo "p"iped | sudo cat; sudo seq 3000\n')
  await terminal.shows(/30000\r\npiped\r\n/)
  await terminal.shows(/2999\r\n3000\r\n/)
})

test('sudo in the background does not touch the terminal until it is in the foreground', async () => {
  using terminal = sandbox.terminal('user', 'PS1=OUT\\> bash --norc -i')
  await terminal.shows(/OUT>/)
  terminal.type(`sudo sh -c 'read line; echo got "<$line>"' & sleep 0.1; stty -a\n`)
  await terminal.shows(/[^-]icanon/)
  terminal.type('fg\n')
  await terminal.shows(/sudo sh -c/)
  terminal.type('words\n')
  await terminal.shows(/got <words>/)
  await terminal.shows(/OUT>/)
})

const garbage = {
  'nothing sensible': Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  zeros: Buffer.alloc(4096),
  'a header without descriptors': Buffer.from('314f5441'.padEnd(32, '0'), 'hex'),
  'a huge size': Buffer.from('314f5441ffffffffffffffff'.padEnd(32, 'f'), 'hex'),
}

for (const [what, bytes] of Object.entries(garbage)) {
  test(`a malformed request (${what}) is dropped without a reply`, async () => {
    const connection = await greet()
    connection.socket.write(bytes)
    await connection.closed
    assert.equal(connection.size(), replyBytes)
    assert.equal((await sudo('user', 'true')).code, 0)
  })
}

test('idle connections block the service only for a limited time', async () => {
  const silent: Connection[] = []
  while (silent.length < 66) silent.push(await greet())
  const refused = await sudo('user', 'id')
  assert.deepEqual([refused.code, refused.stderr], [1, 'sudo: too many commands at once\n'])
  await Promise.all(silent.map((connection) => connection.closed))
  await waitFor('a free slot', async () => (await sudo('user', 'true')).code === 0)
})

const replyBytes = 256

interface Connection {
  readonly socket: Socket
  readonly size: () => number
  readonly closed: Promise<unknown>
}

/** Connects and receives the first reply, READY or a refusal. */
async function greet(): Promise<Connection> {
  const socket = connect(guest.socketPath)
  let bytes = 0
  socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
  socket.on('error', () => {}) // a reset also ends the connection
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await waitFor('the first reply', () => bytes === replyBytes, { intervalMs: 2 })
  return { socket, size: () => bytes, closed }
}
