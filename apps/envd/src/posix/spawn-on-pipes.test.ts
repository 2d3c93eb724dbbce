import assert from 'node:assert/strict'
import { constants } from 'node:fs'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { constants as system } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { begin, byPid, codeOf, collect, shell } from '../testing/process-calls.ts'
import { runEnvd } from '../testing/running-envd.ts'
import type { RunningEnvd } from '../testing/running-envd.ts'
import { openSlowly } from '../testing/slow-stream.ts'

for (const user of ['root', 'daemon']) {
  test(`${user} can reopen /dev/stdout and /dev/stderr`, async () => {
    await using envd = await runEnvd()
    const script = 'echo out > /dev/stdout; echo err > /dev/stderr; echo more'
    const seen = await collect(envd.client.start(shell(script, { cwd: '/' }), envd.as(user)))
    assert.deepEqual([seen.stdout, seen.stderr, seen.end?.exitCode], ['out\nmore\n', 'err\n', 0])
  })
}

test('a process has three blocking pipes and no other descriptors', async () => {
  await using envd = await runEnvd()
  const script = `for fd in 0 1 2; do
      [ -p /dev/fd/$fd ] && sed -n 's/flags:\\t0*//p' /proc/$$/fdinfo/$fd
    done
    ls -l /proc/$$/fd | grep -c fifos`
  const seen = await collect(envd.client.start({ ...shell(script), stdin: true }))
  const flags = seen.stdout.trim().split('\n')
  const pipes = flags.pop()
  const waits = flags.map((octal) => (Number.parseInt(octal, 8) & constants.O_NONBLOCK) === 0)
  assert.deepEqual([waits, pipes], [[true, true, true], '3'])
})

test('bash with open stdin does not act as a remote shell', async () => {
  await using envd = await runEnvd()
  await writeFile(join(envd.folder, '.bashrc'), 'echo from bashrc\n')
  const process = { cmd: 'bash', args: ['-c', 'echo hi'], envs: { HOME: envd.folder } }
  const seen = await collect(envd.client.start({ process, stdin: true }))
  assert.equal(seen.stdout, 'hi\n')
})

test('a hundred concurrent commands each get their own output and end', async () => {
  await using envd = await runEnvd()
  const numbers = Array.from({ length: 100 }, (_, at) => at)
  const seen = await Promise.all(
    numbers.map((at) => collect(envd.client.start({ ...shell(`echo ${at}`), stdin: true }))),
  )
  assert.deepEqual(
    seen.map(({ stdout, end }) => [stdout, end?.exitCode]),
    numbers.map((at) => [`${at}\n`, 0]),
  )
})

test('running processes do not hold the pipes of others open', async () => {
  await using envd = await runEnvd()
  const cat = await begin(envd.client.start({ process: { cmd: 'cat' } }))
  const sleepers = Array.from({ length: 5 }, () => begin(envd.client.start(shell('sleep 60'))))
  const brief = Array.from({ length: 5 }, () => collect(envd.client.start(shell('exit 0'))))
  await Promise.all([...sleepers, ...brief])
  await envd.client.closeStdin({ process: byPid(cat.pid) })
  assert.equal((await collect(cat.rest)).end?.exitCode, 0)
  assert.equal((await envd.client.list({})).processes.length, sleepers.length)
})

test('a slow reader gets all of 50 MB', async () => {
  await using envd = await runEnvd()
  const script = 'head -c 50000000 /dev/zero | tr "\\0" x; exit 9'
  const slow = await openSlowly(envd, 'Start', { process: { cmd: 'sh', args: ['-c', script] } })
  const events = await slow.rest()
  const total = events.reduce((sum, { data }) => sum + atob(data?.stdout ?? '').length, 0)
  assert.deepEqual([total, events.at(-1)?.end?.exitCode], [50_000_000, 9])
})

test('a process that closes its output continues', async () => {
  await using envd = await runEnvd()
  const script = 'echo last; exec >&- 2>&-; read line; [ "$line" = go ] && exit 6'
  const { pid, rest } = await begin(envd.client.start({ ...shell(script), stdin: true }))
  await rest.next()
  const value = new TextEncoder().encode('go\n')
  const process = byPid(pid)
  await envd.client.sendInput({ process, input: { input: { case: 'stdin', value } } })
  assert.equal((await collect(rest)).end?.exitCode, 6)
})

test('input to a process that closed stdin is rejected', async () => {
  await using envd = await runEnvd()
  const script = 'exec <&-; echo closed; exec sleep 60'
  const { pid, rest } = await begin(envd.client.start({ ...shell(script), stdin: true }))
  await rest.next()
  const value = new TextEncoder().encode('x')
  const call = envd.client.sendInput({
    process: byPid(pid),
    input: { input: { case: 'stdin', value } },
  })
  assert.equal(await codeOf(call), Code.Internal)
})

test('a grandchild that writes after the process was killed gets SIGPIPE', async () => {
  await using envd = await runEnvd()
  const status = join(envd.folder, 'status')
  const writer = 'while :; do echo x; sleep 0.02; done'
  const script = `(sh -c '${writer}'; echo $? > ${status}) & wait`
  const { pid, rest } = await begin(envd.client.start(shell(script)))
  await rest.next()
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL })
  const exitCode = await waitFor('the writer', async () => {
    const text = await readFile(status, 'utf8').catch(() => '')
    return text.endsWith('\n') && text
  })
  assert.equal(exitCode, `${128 + system.signals.SIGPIPE}\n`)
})

test('pipes are created ahead in a folder for root only, and none are left over', async () => {
  await using envd = await runEnvd()
  const folder = await firstBatch(envd)
  const before = await count(folder)
  assert.equal((await stat(folder)).mode & 0o777, 0o700)
  await collect(envd.client.start({ ...shell('exit 0'), stdin: true }))
  assert.equal(await count(folder), before - 3)
  await using again = await envd.restart()
  await firstBatch(again)
  assert.equal(await count(folder), before)
  await again[Symbol.asyncDispose]()
  assert.equal(await count(folder), 0)
})

test('removed pipes are created again', async () => {
  await using envd = await runEnvd()
  await rm(await firstBatch(envd), { recursive: true })
  assert.equal(await codeOf(collect(envd.client.start(shell('exit 0')))), Code.InvalidArgument)
  assert.equal((await collect(envd.client.start(shell('exit 5')))).end?.exitCode, 5)
})

test('starts fail without pipes and work again once there are some', async () => {
  await using envd = await runEnvd()
  const folder = dirname(await firstBatch(envd))
  await rm(folder, { recursive: true })
  await writeFile(folder, 'in the way')
  for (let attempt = 0; attempt < 2; attempt++) {
    assert.equal(await codeOf(collect(envd.client.start(shell('exit 0')))), Code.InvalidArgument)
  }
  await rm(folder)
  assert.equal((await collect(envd.client.start(shell('exit 5')))).end?.exitCode, 5)
  assert.deepEqual(envd.unexpectedErrors, [])
})

/** Runs a command, after which the first batch of pipes is complete. */
async function firstBatch(envd: RunningEnvd): Promise<string> {
  await collect(envd.client.start(shell('exit 0')))
  return join(envd.folder, 'state/fifos')
}

async function count(folder: string): Promise<number> {
  return (await readdir(folder).catch(() => [])).length
}
