import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { Fault } from '@atoll/kit/fault'
import { readEnvdLogs } from './read-logs.ts'

const nowMs = 1_000_000

async function setup(answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    read: (afterMs = 0, timeoutMs = 5_000) =>
      readEnvdLogs({ address: '127.0.0.1', initToken: 'secret', port }, afterMs, {
        timeoutMs,
        nowMs,
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const entry = { at: nowMs, level: 'info', message: 'hello', fields: { logger: 'envd' } }

test('entries are requested by time, with the secret, and returned unchanged', async () => {
  const requests: unknown[] = []
  await using envd = await setup(({ url, headers }, response) => {
    requests.push([url, headers['x-init-token'], headers.connection])
    response.end(JSON.stringify({ more: true, entries: [entry] }))
  })
  assert.deepEqual(await envd.read(7), { more: true, entries: [entry] })
  assert.deepEqual(requests, [['/logs?after=7', 'secret', 'close']])
})

const answerOf = (...entries: object[]) => JSON.stringify({ more: false, entries })

const broken: readonly (readonly [string, string])[] = [
  ['nothing', ''],
  ['no JSON', '{"more":false,"entries":['],
  ['something else', '[]'],
  ['no entries', '{"more":false}'],
  ['very deep lists', '['.repeat(500_000)],
  ['a time that is a text', answerOf({ ...entry, at: '5' })],
  ['a time with a fraction', answerOf({ ...entry, at: 5.5 })],
  ['a time that is too large for a number', '{"more":false,"entries":[{"at":1e999}]}'],
  ['a time before the requested time', answerOf({ ...entry, at: 9 })],
  ['a time far ahead', answerOf({ ...entry, at: nowMs + 3_600_000 })],
  ['the same time twice', answerOf(entry, entry)],
  ['times that go back', answerOf(entry, { ...entry, at: nowMs - 1 })],
  ['an unknown level', answerOf({ ...entry, level: 'fatal' })],
  ['a message that is an object', answerOf({ ...entry, message: { toString: 1 } })],
  ['a field that is a number', answerOf({ ...entry, fields: { a: 1 } })],
  ['a field with an odd name', answerOf({ ...entry, fields: { 'a b': '' } })],
  [
    'too many fields',
    answerOf({
      ...entry,
      fields: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`a${i}`, ''])),
    }),
  ],
  [
    'too many entries',
    answerOf(...Array.from({ length: 5001 }, (_, i) => ({ ...entry, at: 11 + i, fields: {} }))),
  ],
  ['a giant answer', answerOf({ ...entry, message: 'x'.repeat(2 * 1024 * 1024) })],
]

for (const [name, text] of broken) {
  test(`an envd that answers ${name} is refused`, async () => {
    await using envd = await setup((_, response) => response.end(text))
    await assert.rejects(envd.read(10), isUnusable)
  })
}

const strange: Readonly<Record<string, RequestListener>> = {
  'answers another status': (_, response) => void response.writeHead(401).end(answerOf(entry)),
  redirects: (_, response) =>
    void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  'closes without an answer': ({ socket }) => void socket.destroy(),
  'closes in the middle': (_, response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('{"more"', () => response.socket?.destroy())
  },
  'speaks another protocol': ({ socket }) => void socket.end('SSH-2.0-x\r\n'),
  'changes the protocol': ({ socket }) =>
    void socket.write('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  'sends endless headers': ({ socket }) =>
    void socket.write(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(1_000_000)}`),
  'never stops': (_, response) => {
    const more = () => void (response.writable && response.write('x'.repeat(100_000), more))
    more()
  },
}

for (const [name, answer] of Object.entries(strange)) {
  test(`an envd that ${name} is refused`, async () => {
    await using envd = await setup(answer)
    await assert.rejects(envd.read(), isUnusable)
  })
}

const slow: Readonly<Record<string, RequestListener>> = {
  'never answers': () => {},
  'stops in the middle of its answer': (_, response) => void response.write('{"more":false'),
  'sends one character at a time': (_, response) => {
    const timer = setInterval(() => response.write(' '), 5)
    response.once('close', () => clearInterval(timer))
  },
}

for (const [name, answer] of Object.entries(slow)) {
  test(`an envd that ${name} times out`, async () => {
    await using envd = await setup(answer)
    await assert.rejects(envd.read(0, 100), isUnusable)
  })
}

test('an envd that does not listen is refused', async () => {
  const source = { address: '127.0.0.1', initToken: 'secret', port: 1 }
  await assert.rejects(readEnvdLogs(source, 0, { timeoutMs: 5_000, nowMs }), isUnusable)
})

test('long texts are truncated, and split characters replaced', async () => {
  const message = 'x'.repeat(5000)
  const fields = { a: `${'y'.repeat(2047)}🌊` }
  await using envd = await setup((_, response) =>
    response.end(answerOf({ ...entry, message, fields })),
  )
  const { entries } = await envd.read()
  assert.deepEqual(
    entries.map((one) => [one.message.length, one.fields['a']]),
    [[4096, `${'y'.repeat(2047)}\ufffd`]],
  )
})

test('a field named __proto__ is dropped', async () => {
  const fields = '{"__proto__":"x","a":"y"}'
  const text = `{"more":false,"entries":[{"at":11,"level":"info","message":"","fields":${fields}}]}`
  await using envd = await setup((_, response) => response.end(text))
  const { entries } = await envd.read()
  assert.deepEqual(entries, [{ at: 11, level: 'info', message: '', fields: { a: 'y' } }])
})

function isUnusable(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'envd_unusable'
}
