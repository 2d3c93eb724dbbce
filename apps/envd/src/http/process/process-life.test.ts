import assert from 'node:assert/strict'
import { access, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kill } from 'node:process'
import { test } from 'node:test'
import { toJson } from '@bufbuild/protobuf'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { ProcessInfoSchema, Signal } from '@atoll/contracts/gen/process/process_pb'
import type {
  StartResponse,
  StreamInputRequestSchema,
} from '@atoll/contracts/gen/process/process_pb'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { begin, byPid, byTag, codeOf, collect, shell } from '../../testing/process-calls.ts'
import { runEnvd } from '../../testing/running-envd.ts'
import { openSlowly } from '../../testing/slow-stream.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

const cat = { process: { cmd: 'cat' } }
const terminal = { process: { cmd: 'cat' }, pty: { size: { cols: 80, rows: 24 } } }

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

function stdin(text: string) {
  return { input: { case: 'stdin', value: bytes(text) } } as const
}

function pty(text: string) {
  return { input: { case: 'pty', value: bytes(text) } } as const
}

test('List returns the requests of running processes only', async () => {
  await using envd = await runEnvd()
  const process = { cmd: 'cat', args: ['-u'], envs: { A: '1' }, cwd: '/tmp' }
  const { pid, rest } = await begin(envd.client.start({ process, tag: 'mine' }))
  const { processes } = await envd.client.list({})
  assert.deepEqual(
    processes.map((listed) => toJson(ProcessInfoSchema, listed)),
    [{ pid, tag: 'mine', config: process }],
  )
  await envd.client.closeStdin({ process: byTag('mine') })
  assert.equal((await collect(rest)).end?.exitCode, 0)
  assert.deepEqual((await envd.client.list({})).processes, [])
})

test('attached clients get all later output and no earlier output', async () => {
  await using envd = await runEnvd()
  const first = await begin(envd.client.start({ ...cat, tag: 'shared' }))
  const process = byPid(first.pid)
  await envd.client.sendInput({ process, input: stdin('early ') })
  await first.rest.next()
  const others = [
    await begin(envd.client.connect({ process })),
    await begin(envd.client.connect({ process: byTag('shared') })),
  ]
  await envd.client.sendInput({ process, input: stdin('late') })
  await envd.client.closeStdin({ process })
  const seen = await Promise.all([first, ...others].map(({ rest }) => collect(rest)))
  assert.deepEqual(
    seen.map(({ stdout, end }) => [stdout, end?.status]),
    Array.from({ length: 3 }, () => ['late', 'exit status 0']),
  )
  assert.deepEqual(
    others.map(({ pid }) => pid),
    [first.pid, first.pid],
  )
})

test('Connect to an exited process works for 30 s and yields its end', async () => {
  let nowMs = 0
  await using envd = await runEnvd({ nowMs: () => nowMs })
  const { pid, end } = await collect(envd.client.start({ ...shell('echo x; exit 7'), tag: 'gone' }))
  const connect = (process: ReturnType<typeof byPid> | ReturnType<typeof byTag>) =>
    collect(envd.client.connect({ process }))
  nowMs = 29_999
  for (const selector of [byPid(pid), byTag('gone')]) {
    const seen = await connect(selector)
    assert.deepEqual([seen.pid, seen.kinds, seen.end], [pid, ['start', 'end'], end])
  }
  const process = byPid(pid)
  const signal = Signal.SIGKILL
  assert.equal(await codeOf(envd.client.sendSignal({ process, signal })), Code.NotFound)
  assert.equal(await codeOf(envd.client.sendInput({ process, input: stdin('') })), Code.NotFound)
  nowMs = 30_000
  assert.equal(await codeOf(connect(byPid(pid))), Code.NotFound)
})

test('a new process takes over the tag of an exited one', async () => {
  await using envd = await runEnvd()
  await collect(envd.client.start({ ...shell('exit 7'), tag: 'again' }))
  const { pid } = await begin(envd.client.start({ ...cat, tag: 'again' }))
  assert.equal((await begin(envd.client.connect({ process: byTag('again') }))).pid, pid)
})

test('calls that do not suit the process are rejected with the right codes', async (t) => {
  await using envd = await runEnvd()
  const { client } = envd
  const piped = byPid((await begin(client.start(cat))).pid)
  const closed = byPid((await begin(client.start(shell('sleep 60')))).pid)
  const onTerminal = byPid((await begin(client.start(terminal))).pid)
  const missing = byPid(4_000_000_000)
  const size = { size: { cols: 1, rows: 1 } }
  const signal = Signal.SIGKILL
  const calls: [string, () => Promise<unknown>, Code | undefined][] = [
    [
      'stdin to a terminal',
      () => client.sendInput({ process: onTerminal, input: stdin('x') }),
      Code.Internal,
    ],
    ['pty to pipes', () => client.sendInput({ process: piped, input: pty('x') }), Code.Internal],
    [
      'stdin that is off',
      () => client.sendInput({ process: closed, input: stdin('x') }),
      Code.Internal,
    ],
    ['no input', () => client.sendInput({ process: piped }), Code.Unimplemented],
    ['no selector', () => client.sendInput({ input: stdin('x') }), Code.Unimplemented],
    [
      'input to a missing process',
      () => client.sendInput({ process: missing, input: stdin('x') }),
      Code.NotFound,
    ],
    ['closing no stdin', () => client.closeStdin({ process: closed }), undefined],
    ['closing a terminal', () => client.closeStdin({ process: onTerminal }), Code.Unknown],
    [
      'closing stdin of a missing process',
      () => client.closeStdin({ process: missing }),
      Code.NotFound,
    ],
    ['resizing pipes', () => client.update({ process: piped, pty: size }), Code.Internal],
    ['updating nothing', () => client.update({ process: piped }), undefined],
    ['updating a missing process', () => client.update({ process: missing }), Code.NotFound],
    ['updating without selector', () => client.update({}), Code.Unimplemented],
    ['no signal', () => client.sendSignal({ process: piped }), Code.Unimplemented],
    [
      'a signal to a missing process',
      () => client.sendSignal({ process: missing, signal }),
      Code.NotFound,
    ],
    ['a signal by no selector', () => client.sendSignal({ signal }), Code.Unimplemented],
    [
      'connecting to a missing process',
      () => collect(client.connect({ process: missing })),
      Code.NotFound,
    ],
    [
      'connecting by no tag',
      () => collect(client.connect({ process: byTag('no') })),
      Code.NotFound,
    ],
    ['connecting by no selector', () => collect(client.connect({})), Code.Unimplemented],
  ]
  for (const [what, call, code] of calls) {
    await t.test(what, async () => assert.equal(await codeOf(call()), code))
  }
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('stdin can be closed twice and then rejects input', async () => {
  await using envd = await runEnvd()
  const script = 'cat; echo closed; while :; do sleep 0.05; done'
  const { pid, rest } = await begin(envd.client.start({ ...shell(script), stdin: true }))
  const process = byPid(pid)
  await envd.client.closeStdin({ process })
  await rest.next()
  await envd.client.closeStdin({ process })
  assert.equal(await codeOf(envd.client.sendInput({ process, input: stdin('x') })), Code.Internal)
})

test('a terminal echoes input, can be resized and killed', async () => {
  await using envd = await runEnvd()
  const script = 'stty size; read line; echo "got $line"; stty size; exec cat'
  const { pid, rest } = await begin(envd.client.start({ ...terminal, ...shell(script) }))
  const process = byPid(pid)
  await shown(rest, /^24 80\r\n$/)
  await envd.client.update({ process, pty: { size: { cols: 132, rows: 50 } } })
  await envd.client.sendInput({ process, input: pty('hi\r') })
  await shown(rest, /^hi\r\ngot hi\r\n50 132\r\n$/)
  await envd.client.sendSignal({ process, signal: Signal.SIGKILL })
  assert.equal((await collect(rest)).end?.status, 'signal: killed')
})

/** Reads until the output so far matches. */
async function shown(rest: AsyncIterator<StartResponse>, expected: RegExp): Promise<void> {
  let screen = ''
  while (!expected.test(screen)) {
    const { value } = await rest.next()
    const event = value?.event?.event
    if (event?.case !== 'data') assert.fail(`${event?.case} after ${JSON.stringify(screen)}`)
    screen += Buffer.from(event.value.output.value).toString()
  }
}

test('SIGTERM goes to the process only, which may exit later', async () => {
  await using envd = await runEnvd()
  const script = 'trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.02; done'
  const { pid, rest } = await begin(envd.client.start(shell(script)))
  await rest.next()
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGTERM })
  assert.equal((await collect(rest)).end?.exitCode, 5)
})

test('streamed input reaches the process in order', async () => {
  await using envd = await runEnvd()
  const { pid, rest } = await begin(envd.client.start(cat))
  async function* input(): AsyncGenerator<MessageInitShape<typeof StreamInputRequestSchema>> {
    yield { event: { case: 'start', value: { process: byPid(pid) } } }
    for (let at = 0; at < 50; at++) {
      yield { event: { case: 'data', value: { input: stdin(`${at} `) } } }
      yield { event: { case: 'keepalive', value: {} } }
    }
  }
  await envd.client.streamInput(input())
  await envd.client.closeStdin({ process: byPid(pid) })
  assert.equal(
    (await collect(rest)).stdout,
    Array.from({ length: 50 }, (_, at) => `${at} `).join(''),
  )
})

test('an input stream must start with an existing process', async () => {
  await using envd = await runEnvd()
  async function* messages(...events: object[]) {
    for (const event of events) yield { event } as object
  }
  const data = { case: 'data', value: { input: stdin('x') } }
  const start = { case: 'start', value: { process: byPid(4_000_000_000) } }
  assert.equal(await codeOf(envd.client.streamInput(messages(data))), Code.Unimplemented)
  assert.equal(await codeOf(envd.client.streamInput(messages(start, data))), Code.NotFound)
})

test('unread input blocks the call until its deadline', async () => {
  await using envd = await runEnvd()
  const { pid } = await begin(envd.client.start({ ...shell('sleep 60'), stdin: true }))
  const call = envd.client.sendInput(
    { process: byPid(pid), input: stdin('x'.repeat(2_000_000)) },
    { timeoutMs: 200 },
  )
  assert.equal(await codeOf(call), Code.DeadlineExceeded)
})

test('the end event waits for a grandchild that holds the output open', async () => {
  await using envd = await runEnvd()
  const marker = join(envd.folder, 'marker')
  const script = `while [ ! -e ${marker} ]; do sleep 0.02; done & exit 0`
  const { pid, rest } = await begin(envd.client.start(shell(script)))
  const seen = collect(rest)
  await waitFor('the exit', () => !isAlive(pid))
  assert.equal((await envd.client.list({})).processes.length, 1)
  await writeFile(marker, '')
  assert.equal((await seen).end?.status, 'exit status 0')
})

test('after a signal the end event does not wait for grandchildren', async () => {
  await using envd = await runEnvd()
  const { pid, rest } = await begin(envd.client.start(shell('sleep 60 & echo $!; wait')))
  const output = await rest.next()
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL })
  assert.equal((await collect(rest)).end?.status, 'signal: killed')
  const sleeper = Number(String(Buffer.from(output.value.event.event.value.output.value)))
  assert.ok(isAlive(sleeper), 'only the one process was to be killed')
  kill(sleeper, 'SIGKILL')
})

test('a signal to an exited process whose output is held open ends it', async () => {
  await using envd = await runEnvd()
  const { pid, rest } = await begin(envd.client.start(shell('sleep 60 & echo $!; exit 4')))
  const output = await rest.next()
  await waitFor('the exit', () => !isAlive(pid))
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGTERM })
  assert.equal((await collect(rest)).end?.status, 'exit status 4')
  kill(Number(String(Buffer.from(output.value.event.event.value.output.value))), 'SIGKILL')
})

test('the deadline of Start ends the stream and the process', async () => {
  await using envd = await runEnvd()
  const call = collect(envd.client.start(shell('sleep 60'), { timeoutMs: 200 }))
  assert.equal(await codeOf(call), Code.DeadlineExceeded)
  await waitFor('the kill', async () => (await envd.client.list({})).processes.length === 0)
})

test('the deadline of Start kills the process even after a disconnect', async () => {
  await using envd = await runEnvd()
  const leaving = new AbortController()
  const headers = { 'connect-timeout-ms': '4000' }
  const { signal } = leaving
  const { pid } = await begin(envd.client.start(shell('sleep 60'), { signal, headers }))
  leaving.abort()
  assert.ok(isAlive(pid))
  const seen = await collect(envd.client.connect({ process: byPid(pid) }))
  assert.deepEqual(seen.end?.status, 'signal: killed')
})

test('the deadline of Connect ends the stream only', async () => {
  await using envd = await runEnvd()
  const { pid } = await begin(envd.client.start(cat))
  const call = collect(envd.client.connect({ process: byPid(pid) }, { timeoutMs: 100 }))
  assert.equal(await codeOf(call), Code.DeadlineExceeded)
  assert.equal((await envd.client.list({})).processes.length, 1)
})

test('a disconnect neither ends nor stalls the process', async () => {
  await using envd = await runEnvd()
  const marker = join(envd.folder, 'done')
  const script = `head -c 30000000 /dev/zero; touch ${marker}; exec sleep 60`
  const slow = await openSlowly(envd, 'Start', { process: { cmd: 'sh', args: ['-c', script] } })
  await stalled(slow.pid)
  assert.equal(await exists(marker), false)
  slow.leave()
  await waitFor('the writer', () => exists(marker))
  assert.equal((await envd.client.list({})).processes[0]?.pid, slow.pid)
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('a slow client slows the process down and gets all output', async () => {
  await using envd = await runEnvd()
  const script = 'head -c 30000000 /dev/zero | tr "\\0" x; exit 9'
  const slow = await openSlowly(envd, 'Start', { process: { cmd: 'sh', args: ['-c', script] } })
  await stalled(slow.pid)
  const events = await slow.rest()
  const total = events.reduce((sum, { data }) => sum + (data ? atob(data.stdout).length : 0), 0)
  assert.deepEqual([total, events.at(-1)?.end?.exitCode], [30_000_000, 9])
})

test('a slow client delays the others until it disconnects', async () => {
  await using envd = await runEnvd()
  const script = 'read x; head -c 30000000 /dev/zero; exit 0'
  const { pid, rest } = await begin(envd.client.start({ ...shell(script), stdin: true }))
  const slow = await openSlowly(envd, 'Connect', { process: { pid } })
  const seen = collect(rest)
  await envd.client.sendInput({ process: byPid(pid), input: stdin('\n') })
  await stalled(pid)
  slow.leave()
  assert.equal((await seen).stdout.length, 30_000_000)
})

test('closing envd ends its processes', async () => {
  const envd: RunningEnvd = await runEnvd()
  const { pid } = await begin(envd.client.start(shell('sleep 60')))
  await envd[Symbol.asyncDispose]()
  await waitFor('the kill', () => !isAlive(pid))
})

/** Waits until the children of `pid` have written something and then stopped writing. */
async function stalled(pid: number): Promise<void> {
  let same = 0
  let last = 0
  await waitFor(
    'the writer to stall',
    async () => {
      const now = await writtenBy(pid)
      same = now > 0 && now === last ? same + 1 : 0
      last = now
      return same > 10
    },
    { intervalMs: 30 },
  )
}

async function writtenBy(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  let total = 0
  for (const child of children.split(' ').filter(Boolean)) {
    const io = await readFile(`/proc/${child}/io`, 'utf8').catch(() => '')
    total += Number(/wchar: (\d+)/.exec(io)?.[1] ?? 0)
  }
  return total
}

function isAlive(pid: number): boolean {
  try {
    return kill(pid, 0)
  } catch {
    return false
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
