import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { TestContext } from 'node:test'
import { StartResponseSchema } from '@atoll/contracts/gen/process/process_pb'
import type { StartResponse } from '@atoll/contracts/gen/process/process_pb'
import { waitFor } from '@atoll/kit/wait'
import { create, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import type { CallOptions } from '@connectrpc/connect'
import { faultFromConnect } from '../connect-fault.ts'
import { createSandboxClient } from '../sandbox.ts'

/** Server that ignores the request, and a client connected to it. */
async function setup(t: TestContext, answer: (socket: Socket, asked: string) => unknown) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    socket.once('data', (asked) => answer(socket, String(asked)))
  }).listen(0, '127.0.0.1')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const clientOf = (host: string, reusesMemory = false) =>
    createSandboxClient({ url: `http://${host}:${address.port}`, sandboxId: 'i', reusesMemory })
  const start = (options?: CallOptions, host = '127.0.0.1') => clientOf(host).start({}, options)
  const startReusing = () => clientOf('127.0.0.1', true).start({})
  const isClosed = () => waitFor('the end of the connection', () => sockets[0]?.destroyed)
  return { start, startReusing, isClosed }
}

function envelope(data: Uint8Array | string, flags = 0): Buffer {
  const bytes = Buffer.from(data)
  const head = Buffer.alloc(5)
  head.writeUInt8(flags)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

function output(value: Uint8Array): Buffer {
  const event = { case: 'data', value: { output: { case: 'stdout', value } } } as const
  return envelope(toBinary(StartResponseSchema, create(StartResponseSchema, { event: { event } })))
}

function chunk(data: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')])
}

const ok = 'HTTP/1.1 200 OK\r\nContent-Type: application/connect+proto\r\n'
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`
const end = envelope('{}', 2)
const over = Buffer.concat([chunk(end), Buffer.from('0\r\n\r\n')])

function stdoutOf(messages: readonly StartResponse[]): Buffer {
  return Buffer.concat(
    messages.map(({ event }) => {
      const printed = event?.event.case === 'data' ? event.event.value.output.value : undefined
      return printed ?? Buffer.alloc(0)
    }),
  )
}

async function failureOf(stream: AsyncIterable<unknown>): Promise<ConnectError> {
  const failed = await Array.fromAsync(stream).then(
    () => assert.fail('the stream ended well'),
    (thrown: unknown) => thrown,
  )
  assert.ok(failed instanceof ConnectError, String(failed))
  return failed
}

const large = randomBytes(3_000_000)
const pieces = Array.from({ length: Math.ceil(large.length / 32_768) }, (_, at) =>
  large.subarray(at * 32_768, (at + 1) * 32_768),
)
const body = Buffer.concat([...pieces.map(output), end])

const framings: [string, Buffer][] = [
  ['chunks', Buffer.concat([Buffer.from(chunked), chunk(body), Buffer.from('0\r\nA: b\r\n\r\n')])],
  ['a length', Buffer.concat([Buffer.from(`${ok}Content-Length: ${body.length}\r\n\r\n`), body])],
  ['no word of its end', Buffer.concat([Buffer.from(`${ok}\r\n`), body])],
  ['a hint before', Buffer.concat([Buffer.from(`HTTP/1.1 103 Hint\r\n\r\n${ok}\r\n`), body])],
]

for (const [name, answer] of framings) {
  test(`all messages of a response with ${name} arrive and stay unchanged`, async (t) => {
    const { start, isClosed } = await setup(t, (socket) => socket.end(answer))
    const messages = await Array.fromAsync(start())
    assert.equal(messages.length, pieces.length)
    assert.ok(stdoutOf(messages).equals(large))
    await isClosed()
  })
}

for (const [name, answer] of framings) {
  test(`with reused buffers, a message with ${name} is valid until the next`, async (t) => {
    const { startReusing } = await setup(t, (socket) => socket.end(answer))
    const seen: Buffer[] = []
    const memory = new Set<ArrayBufferLike>()
    for await (const message of startReusing()) {
      for (let turns = seen.length % 3; turns > 0; turns--) await turn()
      seen.push(stdoutOf([message]))
      if (message.event?.event.case !== 'data') continue
      const { value } = message.event.event.value.output
      if (value) memory.add(value.buffer)
    }
    assert.ok(Buffer.concat(seen).equals(large))
    assert.ok(memory.size < seen.length / 2, `${memory.size} pieces of memory`)
  })
}

test('a response that arrives byte by byte is read', async (t) => {
  const bytes = Buffer.concat([Buffer.from(chunked), chunk(output(Buffer.from('hello'))), over])
  const { start } = await setup(t, async (socket) => {
    socket.setNoDelay(true)
    for (const byte of bytes) await new Promise((sent) => socket.write(Buffer.from([byte]), sent))
  })
  assert.equal(String(stdoutOf(await Array.fromAsync(start({}, 'localhost')))), 'hello')
})

test('a consumer that stops reading slows the server and loses nothing', async (t) => {
  let accepted = 0
  const total = 2000
  const piece = chunk(output(large.subarray(0, 32_768)))
  const { start } = await setup(t, async (socket) => {
    socket.write(chunked)
    for (; accepted < total; accepted++) {
      if (!socket.write(piece)) await once(socket, 'drain')
    }
    socket.end(over)
  })
  const stream = start()[Symbol.asyncIterator]()
  await stream.next()
  let before = -1
  await waitFor(
    'the server to stop',
    () => {
      const stands = accepted === before && accepted > 0
      before = accepted
      return stands
    },
    { intervalMs: 200 },
  )
  assert.ok(accepted < total, 'all was taken from the server')
  let count = 1
  while (!(await stream.next()).done) count += 1
  assert.equal(count, total)
})

test('headers and trailers are passed to the callbacks', async (t) => {
  const { start } = await setup(t, (socket) =>
    socket.end(
      `${ok}X-One: 1\r\n\r\n${envelope('{"metadata":{"x-two":["2"]}}', 2).toString('latin1')}`,
    ),
  )
  const told: (string | null)[] = []
  const onHeader = (headers: Headers) => void told.push(headers.get('x-one'))
  const onTrailer = (headers: Headers) => void told.push(headers.get('x-two'))
  assert.deepEqual(await Array.fromAsync(start({ onHeader, onTrailer })), [])
  assert.deepEqual(told, ['1', '2'])
})

test('an error at the end of the stream is thrown after all messages', async (t) => {
  const error = '{"error":{"code":"deadline_exceeded","message":"too late"}}'
  const { start, isClosed } = await setup(t, (socket) => {
    socket.write(Buffer.concat([Buffer.from(chunked), chunk(output(Buffer.from('some')))]))
    socket.write(chunk(envelope(error, 2)))
  })
  const stream = start()[Symbol.asyncIterator]()
  const first = await stream.next()
  assert.equal(first.done, false)
  await assert.rejects(stream.next(), { code: Code.DeadlineExceeded, rawMessage: 'too late' })
  assert.equal((await stream.next()).done, true)
  await isClosed()
})

test('an aborted call fails at once and closes its connection', async (t) => {
  const { start, isClosed } = await setup(t, (socket) => {
    socket.write(Buffer.concat([Buffer.from(chunked), chunk(body)]))
  })
  const abort = new AbortController()
  const stream = start({ signal: abort.signal })[Symbol.asyncIterator]()
  await stream.next()
  abort.abort(new Error('enough'))
  await assert.rejects(stream.next(), { code: Code.Canceled, rawMessage: 'enough' })
  await isClosed()
})

test('an already aborted signal starts no call', async (t) => {
  const { start } = await setup(t, () => assert.fail('it was called'))
  const failed = await failureOf(start({ signal: AbortSignal.abort() }))
  assert.equal(failed.code, Code.Canceled)
})

test('a deadline is sent to the server and enforced by the client', async (t) => {
  let told: string | undefined
  const { start, isClosed } = await setup(t, (_, asked) => {
    told = /connect-timeout-ms: (\d+)\r\n/.exec(asked)?.[1]
  })
  const failed = await failureOf(start({ timeoutMs: 2500 }))
  assert.equal(told, '2500')
  assert.equal(failed.code, Code.DeadlineExceeded)
  assert.equal(faultFromConnect(failed, 'http://x').kind, 'timeout')
  await isClosed()
})

test('leaving the loop closes the connection', async (t) => {
  const { start, isClosed } = await setup(t, (socket) => {
    socket.write(Buffer.concat([Buffer.from(chunked), chunk(body)]))
  })
  for await (const { event } of start()) {
    assert.equal(event?.event.case, 'data')
    break
  }
  await isClosed()
})

test('a request that cannot be encoded rejects like a failed call', async (t) => {
  const { start } = await setup(t, () => {})
  const failed = await failureOf(start({}, 'a b'))
  assert.equal(failed.code, Code.Internal)
})

const one = output(Buffer.from('x'))
const broken: [string, string | Buffer, Code, RegExp][] = [
  ['nothing', '', Code.Aborted, /closed before/],
  ['another protocol', 'SSH-2.0-OpenSSH\r\n\r\n', Code.Internal, /valid HTTP/],
  [
    'a head without end',
    `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`,
    Code.Internal,
    /valid HTTP/,
  ],
  ['a change of protocol', 'HTTP/1.1 101 Switch\r\n\r\n', Code.Internal, /valid HTTP/],
  [
    'two lengths',
    `${ok}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
    Code.Internal,
    /valid HTTP/,
  ],
  ['broken chunks', `${chunked}zz\r\n`, Code.Internal, /valid HTTP/],
  ['a refusal', 'HTTP/1.1 502 Bad\r\nContent-Length: 2\r\n\r\nno', Code.Unavailable, /HTTP 502/],
  ['a page', 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>', Code.Unknown, /content type/],
  ['no last chunk', `${chunked}1\r\n\0\r\n`, Code.Aborted, /closed before/],
  ['fewer bytes than announced', `${ok}Content-Length: 9\r\n\r\n\0`, Code.Aborted, /closed before/],
  [
    'an empty body',
    `${ok}Content-Length: 0\r\n\r\n`,
    Code.InvalidArgument,
    /without an end-of-stream/,
  ],
  [
    'no end',
    Buffer.concat([Buffer.from(`${ok}\r\n`), one]),
    Code.InvalidArgument,
    /without an end-of-stream/,
  ],
  ['a cut message', `${ok}\r\n\0\0\0\0\x09x`, Code.InvalidArgument, /without an end-of-stream/],
  [
    'two ends',
    Buffer.concat([Buffer.from(`${ok}\r\n`), end, end]),
    Code.InvalidArgument,
    /after the end/,
  ],
  ['an end that is none', `${ok}\r\n\x02\0\0\0\x01x`, Code.Unknown, /invalid end/],
  ['a message too large', `${ok}\r\n\0\x7f\0\0\0`, Code.ResourceExhausted, /Message too large/],
  ['a compressed message', `${ok}\r\n\x01\0\0\0\x01x`, Code.InvalidArgument, /compressed/],
  ['no protobuf', `${ok}\r\n\0\0\0\0\x02\x0a\xff`, Code.Internal, /premature EOF/],
]

for (const [name, answer, code, message] of broken) {
  test(`a response with ${name} is a failure and closes the connection`, async (t) => {
    const bytes = typeof answer === 'string' ? Buffer.from(answer, 'latin1') : answer
    const { start, isClosed } = await setup(t, (socket) => socket.end(bytes))
    const failed = await failureOf(start())
    assert.equal(failed.code, code, failed.message)
    assert.match(failed.rawMessage, message)
    await isClosed()
  })
}

test('a reset connection is a failure', async (t) => {
  const { start } = await setup(t, (socket) => {
    socket.write(chunked, () => socket.resetAndDestroy())
  })
  assert.equal((await failureOf(start())).code, Code.Aborted)
})
