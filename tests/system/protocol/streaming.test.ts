/** Process output under load, on the wire: which subscribers get it, how fast, in which chunks, and when it ends. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { envdHeaders, openProcess, outputOf, shell, startCloud } from '../http-cloud.ts'
import type { HttpCloud, HttpSandbox, StreamCall } from '../http-cloud.ts'
import { runtimes } from '../shell.ts'
import { endFlag, send } from '../wire.ts'
import type { Message } from '../wire.ts'

const polling = { intervalMs: 200 }
const keepaliveHeaders = { 'Keepalive-Ping-Interval': '1' }
const mebibyte = 1024 * 1024

for (const runtime of runtimes) {
  suite(`streams on ${runtime}`, () => {
    let cloud: HttpCloud
    let url: string
    let sandbox: HttpSandbox
    before(async () => {
      cloud = await startCloud({ ATOLL_RUNTIME: runtime })
      url = cloud.installation.url
      sandbox = await cloud.createSandbox()
    })
    after(() => cloud[Symbol.asyncDispose]())

    const start = (body: object, call?: StreamCall) =>
      openProcess(url, envdHeaders(sandbox), body, call)
    const connect = (process: { pid: number } | { tag: string }, call: StreamCall = {}) =>
      openProcess(url, envdHeaders(sandbox), { process }, { ...call, method: 'Connect' })
    const run = async (script: string) =>
      outputOf(await (await start(shell(script))).readRemaining())

    async function unary(method: string, body: unknown) {
      const reply = await send(url, {
        method: 'POST',
        path: `/process.Process/${method}`,
        headers: { 'Content-Type': 'application/json', ...envdHeaders(sandbox) },
        body: JSON.stringify(body),
      })
      return reply.status
    }
    const type = async (pid: number, text: string) => {
      const input = { stdin: Buffer.from(text).toString('base64') }
      assert.equal(await unary('SendInput', { process: { pid }, input }), 200)
    }

    test('five subscribers get every byte of both outputs', async () => {
      const first = await start(withInput('read -r _; seq 200000 & seq 200001 400000 >&2; wait'))
      const otherStreams = await Promise.all(
        Array.from({ length: 4 }, () => connect({ pid: first.pid })),
      )
      await type(first.pid, '\n')
      const received = await Promise.all(
        [first, ...otherStreams].map((stream) => stream.readRemaining()),
      )
      const expectedSums = [checksum(numbers(1, 200_000)), checksum(numbers(200_001, 400_000))]
      for (const messages of received) {
        assert.deepEqual([sumOf(messages, 'stdout'), sumOf(messages, 'stderr')], expectedSums)
        assert.equal(endOf(messages)?.status, 'exit status 0')
      }
    })

    test('a slow reader slows the process and loses no output, in chunks of at most 32 KiB', async () => {
      const slowStream = await start(shell(`${counter} ${total / mebibyte}`))
      const readWritten = async () => Number(await run('cat /tmp/written'))
      const stalledAt = await waitFor('the process to stall', whenSteady(readWritten), polling)
      assert.ok(stalledAt < total, `all of ${stalledAt} bytes went somewhere`)
      const otherStream = await connect({ pid: slowStream.pid })
      const [messages, otherMessages] = await Promise.all([
        slowStream.readRemaining(),
        otherStream.readRemaining(),
      ])
      const expected = createHash('sha256')
      for (let block = 0; block < total / mebibyte; block++)
        expected.update(Buffer.alloc(mebibyte, block))
      assert.deepEqual([bytesOf(messages).length, sumOf(messages)], [total, expected.digest('hex')])
      assert.equal(await readWritten(), total)
      assert.equal(endOf(otherMessages)?.status, 'exit status 0')
      const lengths = messages.map((message) => bytesOf([message]).length)
      assert.ok(Math.max(...lengths) <= 32 * 1024)
    })

    test('chunks of a terminal have at most 16 KiB', async () => {
      const size = { cols: 80, rows: 24 }
      const stream = await start({ ...shell('seq 100000'), pty: { size } })
      const messages = await stream.readRemaining()
      const lengths = messages.map((message) => bytesOf([message], 'pty').length)
      assert.ok(Math.max(...lengths) <= 16 * 1024)
      const expected = numbers(1, 100_000).replaceAll('\n', '\r\n')
      assert.equal(sumOf(messages, 'pty'), checksum(expected))
    })

    test('output without a subscriber is discarded, and the process continues', async () => {
      const abandoned = await start({ ...shell('yes | head -c 20000000; exit 5'), tag: 'alone' })
      abandoned.socket.destroy()
      const exit = await waitFor(
        'the end',
        async () => {
          const stream = await connect({ tag: 'alone' }, { headers: keepaliveHeaders })
          const message = await stream.next()
          if (message?.event?.end) return message.event.end
          stream.socket.destroy()
          return undefined
        },
        polling,
      )
      assert.equal(exit.exitCode, 5)
    })

    test('a silent stream gets keepalive messages', async () => {
      const stream = await start(withInput('read -r _; echo done'), { headers: keepaliveHeaders })
      for (const _ of [1, 2]) {
        assert.deepEqual(await stream.next(), { flags: 0, event: { keepalive: {} } })
      }
      await type(stream.pid, '\n')
      assert.equal(await stream.readUntil(/done/), 'done\n')
    })

    test('a deadline of Connect ends only the stream; a deadline of Start ends the process, also without subscribers', async () => {
      const shortDeadline = { headers: { 'Connect-Timeout-Ms': '500' } }
      const longStream = await start(withInput('read -r _; exit 4'))
      const messages = await (await connect({ pid: longStream.pid }, shortDeadline)).readRemaining()
      assert.equal(messages.at(-1)?.error?.code, 'deadline_exceeded')
      await type(longStream.pid, '\n')
      assert.equal(endOf(await longStream.readRemaining())?.exitCode, 4)

      const longDeadline = { headers: { 'Connect-Timeout-Ms': '10000' } }
      const limitedStream = await start(shell('exec sleep 1000'), longDeadline)
      const otherStream = await connect({ pid: limitedStream.pid })
      limitedStream.socket.destroy()
      const end = endOf(await otherStream.readRemaining())
      assert.deepEqual([end?.exitCode, end?.status], [-1, 'signal: killed'])
    })

    test('later subscribers get the exit, by pid and by tag', async () => {
      const stream = await start({ ...shell('echo gone; exit 6'), tag: 'over' })
      await stream.readRemaining()
      const end = { exitCode: 6, exited: true, status: 'exit status 6', error: 'exit status 6' }
      for (const selector of [{ pid: stream.pid }, { tag: 'over' }]) {
        const lateStream = await connect(selector)
        assert.equal(lateStream.pid, stream.pid)
        assert.deepEqual(await lateStream.readRemaining(), [
          { flags: 0, event: { end } },
          { flags: endFlag },
        ])
      }
      const signal = { process: { pid: stream.pid }, signal: 'SIGNAL_SIGKILL' }
      assert.equal(await unary('SendSignal', signal), 404)
    })

    test('a process that closes its outputs keeps running, and so does its stream', async () => {
      const stream = await start(withInput('exec >&- 2>&-; read -r _; exit 7'), {
        headers: keepaliveHeaders,
      })
      assert.deepEqual(await stream.next(), { flags: 0, event: { keepalive: {} } })
      await type(stream.pid, '\n')
      assert.equal(endOf(await stream.readRemaining())?.exitCode, 7)
    })

    test('a grandchild that holds the output delays the end, unless the process was killed', async () => {
      const body = shell('mkfifo /tmp/gate; (cat /tmp/gate; echo late) & echo early; exit 3')
      const stream = await start(body, { headers: keepaliveHeaders })
      await stream.readUntil(/early/)
      await waitFor(
        'the exit',
        async () => /gone/.test(await run(existsCommand(stream.pid))),
        polling,
      )
      assert.deepEqual(await stream.next(), { flags: 0, event: { keepalive: {} } })
      await run('echo now > /tmp/gate')
      const messages = await stream.readRemaining()
      assert.equal(outputOf(messages), 'now\nlate\n')
      assert.equal(endOf(messages)?.exitCode, 3)

      const killedStream = await start(shell('sleep 1000 & echo $!; wait'))
      const grandchild = Number(await killedStream.readUntil(/\n/))
      const signal = { process: { pid: killedStream.pid }, signal: 'SIGNAL_SIGKILL' }
      assert.equal(await unary('SendSignal', signal), 200)
      assert.equal(endOf(await killedStream.readRemaining())?.status, 'signal: killed')
      assert.equal(await run(existsCommand(grandchild)), 'there\n')
    })

    test('fifty concurrent commands each return their own output', async () => {
      const { commands } = await Sandbox.connect(sandbox.sandboxID, cloud.installation.connection)
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          commands.run(`echo ${index}; seq ${index} ${index + 999} >&2`, { timeoutMs: 120_000 }),
        ),
      )
      for (const [index, { stdout, stderr }] of results.entries()) {
        assert.deepEqual([stdout, stderr], [`${index}\n`, numbers(index, index + 999)])
      }
    })
  })
}

const total = 64 * mebibyte

/** Writes the given number of mebibytes, each of one repeated byte, and prints how many bytes were written so far. */
const counter = `python3 -c '
import os, sys
for at in range(int(sys.argv[1])):
    block = bytes([at]) * ${mebibyte}
    while block: block = block[os.write(1, block):]
    with open("/tmp/new", "w") as file: file.write(str((at + 1) * ${mebibyte}))
    os.rename("/tmp/new", "/tmp/written")
'`

/** Returns a function that returns the value after six equal reads in a row, and undefined before. */
function whenSteady(readValue: () => Promise<number>): () => Promise<number | undefined> {
  let previous = Number.NaN
  let repeats = 0
  return async () => {
    const value = await readValue()
    repeats = value === previous ? repeats + 1 : 0
    previous = value
    return repeats >= 5 && value > 0 ? value : undefined
  }
}

function withInput(script: string): object {
  return { ...shell(script), stdin: true }
}

function existsCommand(pid: number): string {
  return `test -d /proc/${pid} && echo there || echo gone`
}

function bytesOf(messages: readonly Message[], kind: 'stdout' | 'stderr' | 'pty' = 'stdout') {
  return Buffer.concat(
    messages.map(({ event }) => Buffer.from(event?.data?.[kind] ?? '', 'base64')),
  )
}

function sumOf(messages: readonly Message[], kind?: 'stdout' | 'stderr' | 'pty'): string {
  return checksum(bytesOf(messages, kind))
}

function checksum(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function endOf(messages: readonly Message[]) {
  return messages.find(({ event }) => event?.end)?.event?.end
}

/** Returns the numbers in the format of seq. */
function numbers(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, offset) => `${from + offset}\n`).join('')
}
