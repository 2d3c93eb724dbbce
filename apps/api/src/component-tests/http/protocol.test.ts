/** Protocol rules for all operations: methods, media types, sizes, encodings, CORS. */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, before, test } from 'node:test'
import { operations } from '@atoll/contracts/operations'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest, Reply } from '../../sim/api.ts'

let api: ApiUnderTest
before(async () => void (api = await startApiUnderTest()))
after(() => api[Symbol.asyncDispose]())

function checkError({ status, json, text }: Reply, expected: number, message: RegExp): void {
  assert.deepEqual([status, Object(json).code], [expected, expected], text)
  assert.match(Object(json).message, message)
}

test('GET /health responds with plain text and needs no key', async () => {
  const { status, text, headers } = await api.call('GET', '/health', { headers: {} })
  assert.deepEqual([status, text], [200, 'Health check successful'])
  assert.match(headers.get('content-type') ?? '', /^text\/plain/)
})

test('GET /openapi.json lists all operations and needs no key', async () => {
  const { status, json } = await api.call('GET', '/openapi.json', { headers: {} })
  const { openapi, info, paths } = Object(json)
  assert.deepEqual([status, openapi, info.version], [200, '3.1.0', '0.1.0'])
  assert.deepEqual(
    Object.keys(paths).toSorted(),
    [...new Set(operations.map(({ path }) => path))].toSorted(),
  )
})

test('an unknown route is 404 with a JSON body, also without a key', async () => {
  for (const [method, path] of [
    ['GET', '/nope'],
    ['POST', '/sandboxes/i1/nope'],
    ['GET', '/'],
    ['GET', '//sandboxes'],
    ['DELETE', '/v2/sandboxes/i1'],
  ] as const) {
    checkError(await api.call(method, path, { headers: {} }), 404, /There is no/)
  }
})

test('a known path with a wrong method is 405 and lists the allowed methods', async () => {
  for (const [method, path, allow] of [
    ['PUT', '/sandboxes', 'POST, GET, HEAD'],
    ['POST', '/sandboxes/i1', 'GET, HEAD, DELETE'],
    ['GET', '/sandboxes/i1/timeout', 'POST'],
    ['POST', '/health', 'GET, HEAD'],
    ['PUT', '/api-keys/x', 'PATCH, DELETE'],
  ] as const) {
    const reply = await api.call(method, path)
    checkError(reply, 405, /is not possible on .*: use/)
    assert.equal(reply.headers.get('allow'), allow)
  }
})

test('a malformed URL is 400', async () => {
  checkError(await api.call('GET', '/sandboxes/%zz'), 400, /valid/)
})

for (const type of [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'nonsense',
]) {
  test(`a body with Content-Type ${type} is 415`, async () => {
    const headers = { 'x-api-key': api.ours.apiKey, 'content-type': type }
    const reply = await api.call('POST', '/sandboxes', { headers, body: '{"templateID":"base"}' })
    checkError(reply, 415, /application\/json/)
  })
}

/** Sends the chunks without a Content-Length, as the SDKs do. `undefined` sends no body. */
function send(path: string, chunks: readonly string[] | undefined, headers = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${api.url}${path}`,
      { method: 'POST', headers: { 'x-api-key': api.ours.apiKey, ...headers } },
      async (response) => {
        const text = (await response.toArray()).join('')
        const json: unknown = text ? JSON.parse(text) : undefined
        resolve({ status: response.statusCode ?? 0, headers: new Headers(), text, json })
      },
    )
    request.on('error', reject)
    for (const chunk of chunks ?? []) request.write(chunk)
    request.end()
  })
}

const json = { 'content-type': 'application/json' }

test('a chunked JSON body is read', async () => {
  const { status, text } = await send('/sandboxes', ['{"templ', 'ateID":"base"}'], json)
  assert.equal(status, 201, text)
})

test('an optional body may be missing, empty, empty and chunked, or {}', async () => {
  const path = `/v2/sandboxes/${await api.create()}/connect`
  const chunked = { ...json, 'transfer-encoding': 'chunked' }
  const replies = [
    await send(path, undefined),
    await send(path, undefined, { 'content-length': '0' }),
    await send(path, undefined, { ...json, 'content-length': '0' }),
    await send(path, [], chunked),
    await send(path, ['{}'], json),
  ]
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
})

test('a body over 16 MiB is 413, with and without a Content-Length', async () => {
  const mebibyte = ' '.repeat(1024 * 1024)
  const chunks = Array<string>(17).fill(mebibyte)
  checkError(await send('/sandboxes', chunks, json), 413, /at most 16 MiB/)
  const length = { ...json, 'content-length': String(17 * 1024 * 1024) }
  checkError(await send('/sandboxes', chunks, length), 413, /at most 16 MiB/)
  assert.equal((await api.call('GET', '/sandboxes')).status, 200)
})

test('a body just below the limit is read', async () => {
  const body = `{"templateID":"base","x":"${'x'.repeat(16 * 1024 * 1024 - 100)}"}`
  const { status } = await api.call('POST', '/sandboxes', { body })
  assert.equal(status, 201)
})

test('HEAD needs the same credentials as GET and has no body', async () => {
  const refused = await api.call('HEAD', '/sandboxes', { headers: {} })
  const { status, text } = await api.call('HEAD', '/sandboxes')
  assert.deepEqual([refused.status, status, text], [401, 200, ''])
})

test('CORS allows any origin to call the API, send its request headers and read its response headers', async () => {
  const preflight = await api.call('OPTIONS', '/v2/sandboxes', {
    headers: {
      origin: 'https://example.org',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-api-key,content-type',
    },
  })
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /X-API-Key/)
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /DELETE/)
  for (const path of ['/sandboxes', '/nope']) {
    const { headers } = await api.call('GET', path, { headers: { origin: 'https://example.org' } })
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.match(headers.get('access-control-expose-headers') ?? '', /X-Next-Token/)
  }
})

test('an unexpected error is 500 and does not reveal its message', async () => {
  let armed = false
  const now = () => (armed ? assert.fail('a secret of ours') : new Date('2026-01-01T00:00:00Z'))
  await using broken = await startApiUnderTest({ clock: { now } })
  armed = true
  const headers = { authorization: `Bearer ${broken.ours.accessToken}` }
  const reply = await broken.call('POST', '/api-keys', { headers, body: { name: 'x' } })
  armed = false
  checkError(reply, 500, /Internal error; the log of the server has the details under/)
  assert.equal(Object(reply.json).error_code, 'internal_server_error')
  assert.doesNotMatch(reply.text, /secret/)
})

test('a server that is shutting down responds with 503', async () => {
  await using stopped = await startApiUnderTest()
  await stopped.stop()
  checkError(await stopped.call('GET', '/health'), 503, /shutting down/)
})
