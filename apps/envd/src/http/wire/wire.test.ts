import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import { waitFor } from '@atoll/kit/wait'
import { gzipSync } from 'node:zlib'
import { begin, byPid, shell } from '../../testing/process-calls.ts'
import { envelope, parseEnvelopes } from '../../testing/envelopes.ts'
import type { Envelope } from '../../testing/envelopes.ts'
import { accessToken, runEnvd } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

const stream = {
  'content-type': 'application/connect+json',
  'connect-protocol-version': '1',
  'x-access-token': accessToken,
}
const unary = { ...stream, 'content-type': 'application/json' }

function post(
  envd: RunningEnvd,
  method: string,
  body: string | Buffer<ArrayBuffer>,
  headers: Record<string, string>,
): Promise<Response> {
  return fetch(`${envd.url}/process.Process/${method}`, { method: 'POST', headers, body })
}

async function framesOf(response: Response): Promise<Envelope[]> {
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'application/connect+json')
  return parseEnvelopes(Buffer.from(await response.arrayBuffer()))
}

/** Returns the error in the last frame of a stream. */
async function failureOf(response: Response): Promise<{ code?: string; message?: string }> {
  const frames = await framesOf(response)
  assert.equal(frames.length, 1)
  assert.equal(frames[0]?.flags, 2)
  return JSON.parse(frames[0]?.text ?? '').error
}

test('Start as raw JSON omits zero values and ends with an empty end frame', async () => {
  await using envd = await runEnvd()
  const frames = await framesOf(await post(envd, 'Start', envelope(shell('printf hi')), stream))
  const { pid } = JSON.parse(frames[0]?.text ?? '').event.start
  assert.deepEqual(
    frames.map(({ flags, text: json }) => [flags, JSON.parse(json)]),
    [
      [0, { event: { start: { pid } } }],
      [0, { event: { data: { stdout: btoa('hi') } } }],
      [0, { event: { end: { exited: true, status: 'exit status 0' } } }],
      [2, {}],
    ],
  )
})

test('terminal output is base64 in event.data.pty, and Update returns {}', async () => {
  await using envd = await runEnvd()
  const { pid } = await begin(envd.client.start({ process: { cmd: 'cat' }, pty: {} }))
  const update = { process: { pid }, pty: { size: { cols: 100, rows: 30 } } }
  const response = await post(envd, 'Update', JSON.stringify(update), unary)
  assert.deepEqual([response.status, await response.text()], [200, '{}'])
  assert.equal(response.headers.get('content-type'), 'application/json')

  const request = {
    process: { cmd: 'printf', args: ['hi'] },
    pty: { size: { cols: 80, rows: 24 } },
  }
  const frames = await framesOf(await post(envd, 'Start', envelope(request), stream))
  assert.deepEqual(JSON.parse(frames[1]?.text ?? ''), { event: { data: { pty: btoa('hi') } } })
})

test('each frame is sent immediately', async () => {
  await using envd = await runEnvd()
  const response = await post(envd, 'Start', envelope(shell('echo now; sleep 60')), stream)
  const reader = response.body?.getReader()
  let seen = ''
  while (!seen.includes(btoa('now\n')))
    seen += String(Buffer.from((await reader?.read())?.value ?? []))
  await reader?.cancel()
})

test('a unary error has a status and a named code', async () => {
  await using envd = await runEnvd()
  const response = await post(envd, 'SendSignal', '{"process":{"pid":4000000000}}', unary)
  assert.equal(response.status, 404)
  const { code, message } = JSON.parse(await response.text())
  assert.deepEqual(
    [code, message],
    ['not_found', 'No process with pid 4000000000. It may have exited.'],
  )
})

test('decompression of a message stops at 4 MiB', async () => {
  await using envd = await runEnvd()
  const body = gzipSync(`{}${' '.repeat(5 * 1024 * 1024)}`)
  const packed = { ...unary, 'content-encoding': 'gzip' }
  const refused = await post(envd, 'List', body, packed)
  assert.deepEqual(
    [refused.status, JSON.parse(await refused.text()).code],
    [429, 'resource_exhausted'],
  )
  const head = Buffer.from([1, 0, 0, 0, 0])
  head.writeUInt32BE(body.length, 1)
  const frame = Buffer.concat([head, body])
  const streamed = { ...stream, 'connect-content-encoding': 'gzip' }
  const { code } = await failureOf(await post(envd, 'Start', frame, streamed))
  assert.equal(code, 'resource_exhausted')
})

test('only input may be large, and too much at once is rejected', async () => {
  await using envd = await runEnvd()
  const { pid } = await begin(envd.client.start({ process: { cmd: 'sleep', args: ['1000'] } }))
  const input = (bytes: number) =>
    JSON.stringify({ process: { pid }, input: { stdin: Buffer.alloc(bytes).toString('base64') } })
  const codeOf = async (method: string, body: string) => {
    const reply = await post(envd, method, body, { ...unary, 'connect-timeout-ms': '20000' })
    return reply.status === 200 ? 'ok' : JSON.parse(await reply.text()).code
  }
  const padded = `{"process":{"pid":${pid}}${' '.repeat(5_000_000)}}`
  assert.equal(await codeOf('Update', padded), 'resource_exhausted')
  const stuck = [codeOf('SendInput', input(30_000_000)), codeOf('SendInput', input(30_000_000))]
  assert.equal(await Promise.race(stuck), 'resource_exhausted')
  assert.equal(await codeOf('List', '{}'), 'ok')
  await envd.client.sendSignal({ process: byPid(pid), signal: Signal.SIGKILL })
  const refused = (await Promise.all(stuck)).filter((code) => code === 'resource_exhausted')
  assert.equal(refused.length, 1)
  assert.equal(await codeOf('SendInput', input(30_000_000)), 'not_found')
})

test('unknown fields are ignored, snake case and gzip are supported', async () => {
  await using envd = await runEnvd()
  const body = gzipSync('{"process":{"cmd":"true","new_field":1},"other":{}}')
  const frame = Buffer.concat([Buffer.from([1, 0, 0, 0, body.length]), body])
  const headers = { ...stream, 'connect-content-encoding': 'gzip' }
  const frames = await framesOf(await post(envd, 'Start', frame, headers))
  assert.equal(frames.at(-2)?.text, '{"event":{"end":{"exited":true,"status":"exit status 0"}}}')
})

const giant = Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 0x7b])
const badStreams: [string, Buffer<ArrayBuffer>, Record<string, string>, string][] = [
  ['no frame', Buffer.alloc(0), {}, 'unimplemented'],
  ['half a head', Buffer.from([0, 0, 0]), {}, 'invalid_argument'],
  ['half a message', envelope('{"process":{}}').subarray(0, 10), {}, 'invalid_argument'],
  ['a giant declared length', giant, {}, 'resource_exhausted'],
  ['a flag that means nothing', envelope('{}', 0x80), {}, 'invalid_argument'],
  ['a flag between others', envelope('{}', 0x04), {}, 'invalid_argument'],
  ['a message that is not JSON', envelope('{"process"'), {}, 'invalid_argument'],
  ['a message of wrong types', envelope({ process: { cmd: 5 } }), {}, 'invalid_argument'],
  ['bytes that are not text', Buffer.from([0, 0, 0, 0, 2, 0xff, 0xfe]), {}, 'invalid_argument'],
  ['two messages', Buffer.concat([envelope({}), envelope({})]), {}, 'unimplemented'],
  ['compression that was not declared', envelope('xxx', 1), {}, 'invalid_argument'],
  ['an unknown compression', envelope({}), { 'connect-content-encoding': 'zip' }, 'unimplemented'],
  ['a timeout in words', envelope({}), { 'connect-timeout-ms': 'soon' }, 'invalid_argument'],
  [
    'a timeout of 11 digits',
    envelope({}),
    { 'connect-timeout-ms': '10000000000' },
    'invalid_argument',
  ],
  ['a negative timeout', envelope({}), { 'connect-timeout-ms': '-1' }, 'invalid_argument'],
  [
    'a timeout of zero',
    envelope(shell('true')),
    { 'connect-timeout-ms': '0' },
    'deadline_exceeded',
  ],
  ['an unknown user', envelope(shell('true')), basic('ghost'), 'unauthenticated'],
]

function basic(user: string) {
  return { authorization: `Basic ${btoa(`${user}:`)}` }
}

test('a malformed stream gets 200 and an end frame with the error', async (t) => {
  await using envd = await runEnvd()
  for (const [what, body, headers, code] of badStreams) {
    await t.test(what, async () => {
      const failure = await failureOf(await post(envd, 'Start', body, { ...stream, ...headers }))
      assert.equal(failure.code, code)
      assert.ok(failure.message)
    })
  }
  assert.deepEqual((await envd.client.list({})).processes, [])
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('a timeout above the timer limit does not fire at once', async () => {
  await using envd = await runEnvd()
  const headers = { ...stream, 'connect-timeout-ms': '9999999999' }
  const frames = await framesOf(await post(envd, 'Start', envelope(shell('sleep 0.1')), headers))
  assert.deepEqual(frames.at(-1), { flags: 2, text: '{}' })
})

const badCalls: [string, string, string, RequestInit & { headers: object }, number][] = [
  ['an empty body', 'Update', '', { headers: unary }, 400],
  ['a body that is not JSON', 'Update', '{', { headers: unary }, 400],
  ['a body of wrong types', 'Update', '{"process":[]}', { headers: unary }, 400],
  [
    'binary that is none',
    'List',
    '\u0007',
    { headers: { ...unary, 'content-type': 'application/proto' } },
    400,
  ],
  ['a stream type for a unary call', 'List', '{}', { headers: stream }, 415],
  ['a unary type for a stream', 'Start', '{}', { headers: unary }, 415],
  ['plain text', 'List', '{}', { headers: { ...unary, 'content-type': 'text/plain' } }, 415],
  ['another method', 'List', '{}', { headers: unary, method: 'PUT' }, 405],
  ['an unknown RPC', 'Fly', '{}', { headers: unary }, 404],
  [
    'no protocol version',
    'List',
    '{}',
    { headers: without('connect-protocol-version', unary) },
    400,
  ],
  [
    'no protocol version on a stream',
    'Start',
    '{}',
    { headers: without('connect-protocol-version', stream) },
    400,
  ],
  [
    'another protocol version',
    'List',
    '{}',
    { headers: { ...unary, 'connect-protocol-version': '2' } },
    400,
  ],
  ['an unknown user', 'List', '{}', { headers: { ...unary, ...basic('ghost') } }, 401],
  ['no token', 'List', '{}', { headers: without('x-access-token', unary) }, 401],
  ['a wrong token', 'Start', '{}', { headers: { ...stream, 'x-access-token': 'wrong' } }, 401],
]

function without(name: string, headers: object): object {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name))
}

test('a call with a wrong method or header is rejected with the right status', async (t) => {
  await using envd = await runEnvd()
  for (const [what, method, body, init, status] of badCalls) {
    await t.test(what, async () => {
      const url = `${envd.url}/process.Process/${method}`
      const response = await fetch(url, { method: 'POST', body, ...init })
      assert.equal(response.status, status)
      assert.ok((await response.text()).length > 0)
    })
  }
  assert.deepEqual(envd.unexpectedErrors, [])
})

test('the error names the expected content type and the missing header', async () => {
  await using envd = await runEnvd()
  const odd = await post(envd, 'Start', '{}', unary)
  assert.match(odd.headers.get('accept-post') ?? '', /application\/connect\+json/)
  const { 'connect-protocol-version': _, ...rest } = unary
  const old = await post(envd, 'List', '{}', rest)
  const { code, message } = JSON.parse(await old.text())
  assert.equal(code, 'invalid_argument')
  assert.match(message, /Connect-Protocol-Version/)
})

const rawRequests: [string, string, RegExp][] = [
  ['no Host', 'POST /process.Process/List HTTP/1.0\r\nHEAD\r\n\r\n{}', /^HTTP\/1.1 200/],
  [
    'an odd Host',
    'POST /process.Process/List HTTP/1.1\r\nHost: a b/%\r\nHEAD\r\n\r\n{}',
    /^HTTP\/1.1 200/,
  ],
  [
    'an odd path',
    'GET //%%%?% HTTP/1.1\r\nHost: a\r\nX-Access-Token: TOKEN\r\n\r\n',
    /^HTTP\/1.1 404/,
  ],
  ['no HTTP at all', '\u0016\u0003\u0001\r\n\r\n', /^HTTP\/1.1 400/],
  [
    'a body shorter than announced',
    'POST /process.Process/Start HTTP/1.1\r\nHost: a\r\nSTREAM\r\nContent-Length: 99\r\n\r\nx',
    /^HTTP\/1.1 400/,
  ],
]

test('malformed HTTP closes the connection and does not crash envd', async (t) => {
  await using envd = await runEnvd()
  const lines = (headers: object) =>
    Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\r\n')
  for (const [what, request, answer] of rawRequests) {
    await t.test(what, async () => {
      const socket = connect(Number(new URL(envd.url).port), '127.0.0.1')
      socket.on('error', () => {})
      const body = request
        .replace('HEAD', `${lines(unary)}\r\nConnection: close\r\nContent-Length: 2`)
        .replace('STREAM', lines(stream))
        .replace('TOKEN', `${accessToken}\r\nConnection: close`)
      socket.end(body)
      assert.match(await text(socket), answer)
    })
  }
  await waitFor('the daemon', async () => (await fetch(`${envd.url}/health`)).status === 204)
  assert.deepEqual(envd.unexpectedErrors, [])
})
