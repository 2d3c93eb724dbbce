import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kill, pid as ownPid } from 'node:process'
import { test } from 'node:test'
import { run } from '@atoll/kit/run'
import { createSpawnerProcess } from '@atoll/kit/spawner/process'
import { createReplyReader, encodeRequest } from '@atoll/kit/spawner/wire'
import { waitFor } from '@atoll/kit/wait'
import { begin, collect, shell } from '../testing/process-calls.ts'
import { buildGuestProgram } from '../testing/guest-program.ts'
import { runEnvd } from '../testing/running-envd.ts'

const nowhere = [undefined, '', ''] as const

function asRoot(script: string) {
  const args = ['exec', '--uid', '0', '--gid', '0', '--', 'sh', '-c', script]
  return { stdio: nowhere, args, env: { PATH: '/usr/bin:/bin' } }
}

test('pids and exits are reported in any order', async () => {
  await using spawner = createSpawnerProcess([await buildGuestProgram(), 'spawner'])
  const long = await spawner.start(asRoot('sleep 60'))
  const failing = await spawner.start(asRoot('exit 7'))
  const killed = await spawner.start(asRoot('kill -USR1 $$'))
  assert.deepEqual(await failing.exit, { by: 'exit', code: 7 })
  assert.deepEqual(await killed.exit, { by: 'signal', signal: 10 })
  assert.equal(new Set([long.pid, failing.pid, killed.pid]).size, 3)
  long.kill('SIGTERM')
  assert.deepEqual(await long.exit, { by: 'signal', signal: 15 })
  long.kill('SIGTERM')
})

test('a missing pipe is reported with the error name', async () => {
  await using spawner = createSpawnerProcess([await buildGuestProgram(), 'spawner'])
  const stdio = [undefined, '/no/such/pipe', ''] as const
  await assert.rejects(spawner.start({ ...asRoot('exit 0'), stdio }), /ENOENT/)
})

test('a child that hangs before its exec is killed and leaves nothing behind', async (t) => {
  await using spawner = createSpawnerProcess([await buildGuestProgram(), 'spawner'], {
    lookIntervalMs: 500,
  })
  const folder = await mkdtemp(join(tmpdir(), 'atoll-spawner-'))
  t.after(() => rm(folder, { recursive: true }))
  const makePipe = async (name: string) => {
    const path = join(folder, name)
    await run('mkfifo', [path])
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    t.after(() => closeSync(fd))
    return { path, fd }
  }
  const [full, empty] = [await makePipe('full'), await makePipe('empty')]
  const into = ({ path }: { path: string }) => [undefined, '', path] as const
  const unknown = ['exec', '--uid', '0', '--gid', '0', '--', '/no/such/command']

  const long = await spawner.start(asRoot('sleep 60'))
  const filling = { ...asRoot('head -c 65536 /dev/zero >&2'), stdio: into(full) }
  assert.deepEqual(await (await spawner.start(filling)).exit, { by: 'exit', code: 0 })
  const [stuck, next] = await Promise.all([
    spawner.start({ args: unknown, env: {}, stdio: into(full) }),
    spawner.start({ args: unknown, env: {}, stdio: into(empty) }),
  ])
  assert.deepEqual(await stuck.exit, { by: 'signal', signal: 9 })
  assert.deepEqual(await next.exit, { by: 'exit', code: 127 })
  const said = Buffer.alloc(1024)
  const size = readSync(empty.fd, said)
  assert.equal(said.toString('utf8', 0, size), '/no/such/command: command not found\n')
  long.kill('SIGTERM')
  assert.deepEqual(await long.exit, { by: 'signal', signal: 15 })
})

test('processes of a tied spawner die with it, and it ignores signals to the group', async () => {
  const guest = await buildGuestProgram()
  await using free = createSpawnerProcess([guest, 'spawner'])
  await using tied = createSpawnerProcess([guest, 'spawner', '--tied'])
  const stays = await free.start(asRoot('exec sleep 60'))
  const goes = await tied.start(asRoot('exec sleep 60'))
  kill(await parentOf(goes.pid), 'SIGTERM')
  const next = await tied.start(asRoot('exit 3'))
  assert.deepEqual(await next.exit, { by: 'exit', code: 3 })
  await Promise.all([free[Symbol.asyncDispose](), tied[Symbol.asyncDispose]()])
  await waitFor('its end', async () => (await stateOf(goes.pid)) === undefined)
  assert.notEqual(await stateOf(stays.pid), undefined)
  kill(stays.pid, 'SIGKILL')
})

test('a process without variables inherits those of the spawner', async () => {
  await using spawner = createSpawnerProcess([await buildGuestProgram(), 'spawner'], {
    env: { COLOUR: 'blue' },
  })
  const exitOf = async (env: Record<string, string>) =>
    (await spawner.start({ ...asRoot('[ "$COLOUR" = blue ]'), env })).exit
  assert.deepEqual(await exitOf({}), { by: 'exit', code: 0 })
  assert.deepEqual(await exitOf({ SHAPE: 'round' }), { by: 'exit', code: 1 })
  assert.deepEqual(await exitOf({}), { by: 'exit', code: 0 })
})

test('a spawner that cannot start fails each request', async () => {
  await using spawner = createSpawnerProcess(['/no/such/helper'])
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(spawner.start(asRoot('exit 0')), /the spawner exited/)
  }
})

test('processes end with their spawner, and the next start gets a new one', async () => {
  await using envd = await runEnvd()
  const { pid, rest } = await begin(envd.client.start(shell('exec sleep 60')))
  kill(await parentOf(pid), 'SIGKILL')
  const { end } = await collect(rest)
  assert.equal(end?.status, 'signal: killed')
  await waitFor('its end', async () => (await stateOf(pid)) === undefined)
  await waitFor('a new spawner', async () => {
    const seen = await collect(envd.client.start(shell('echo again'))).catch(() => undefined)
    return seen?.stdout === 'again\n'
  })
  assert.deepEqual(envd.unexpectedErrors, [])
})

test("the next process can start as soon as a spawner's exit is reported", async () => {
  await using spawner = createSpawnerProcess([await buildGuestProgram(), 'spawner'])
  const { pid, exit } = await spawner.start(asRoot('exec sleep 60'))
  const next = exit.then(() => spawner.start(asRoot('exit 3')))
  kill(await parentOf(pid), 'SIGKILL')
  assert.deepEqual(await (await next).exit, { by: 'exit', code: 3 })
})

test('closing envd leaves no spawner behind', async () => {
  const before = await spawnersOf(ownPid)
  const envd = await runEnvd()
  await collect(envd.client.start(shell('exit 0')))
  assert.equal((await spawnersOf(ownPid)).length, before.length + 1)
  await envd[Symbol.asyncDispose]()
  assert.deepEqual(await spawnersOf(ownPid), before)
})

test('malformed requests are rejected, and oversized ones end the spawner', async () => {
  const child = spawn(await buildGuestProgram(), ['spawner'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const replies = createReplyReader()
  const seen: unknown[] = []
  child.stdout.on('data', (chunk: Buffer) => seen.push(...replies(chunk)))
  const whole = encodeRequest(1, asRoot('exit 0'))
  for (const [offset, value] of [
    [8, 3],
    [8, 0],
    [8, 0xffff_ffff],
    [12, 2],
    [12, 0xffff_ffff],
  ] as const) {
    const broken = Buffer.from(whole)
    broken.writeUInt32LE(value, offset)
    child.stdin.write(broken)
  }
  const unended = Buffer.from(whole)
  unended[unended.length - 1] = 65
  child.stdin.write(unended)
  child.stdin.write(Buffer.from(Uint32Array.of(2, 0, 1, 0).buffer))
  child.stdin.write(Buffer.from(Uint32Array.of(3, 0xffff_ffff, 1, 0).buffer))
  assert.deepEqual(await closed, [0, null])
  const refused = { kind: 'refused', errno: 22 }
  assert.deepEqual(
    seen,
    [1, 1, 1, 1, 1, 1, 2].map((id) => ({ ...refused, id })),
  )
})

async function parentOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1')
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1])
}

/** Returns the state from /proc/PID/stat, or undefined if the process is gone or a zombie. */
async function stateOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '')
  const state = text.slice(text.lastIndexOf(')') + 2)[0]
  return state === 'Z' ? undefined : state
}

async function spawnersOf(parent: number): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (!line.endsWith('\0spawner\0')) continue
    if ((await parentOf(Number(pid)).catch(() => 0)) === parent) found.push(pid)
  }
  return found
}
