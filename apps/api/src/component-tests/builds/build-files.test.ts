import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { manualClock, startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'
import { requestBuild } from '../../sim/build-client.ts'

/** Build file uploads: URL, authorization and size limits. */

const hash = 'ab'.repeat(32)

async function link(api: ApiUnderTest, headers: Record<string, string> = {}) {
  const { status, json, text } = await api.call('GET', `/templates/mine/files/${hash}`, {
    headers: { 'x-api-key': api.ours.apiKey, ...headers },
  })
  assert.equal(status, 201, text)
  const { present, url } = Object(json)
  return { present, url: new URL(url) }
}

async function put(url: URL, body: Buffer<ArrayBuffer>, headers: Record<string, string> = {}) {
  const response = await fetch(url, { method: 'PUT', body, headers })
  const text = await response.text()
  const message = text === '' ? '' : String(Object(JSON.parse(text)).message)
  return { status: response.status, message }
}

test('files are sent without a key to the URL that was given, in pieces, and are there then', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  const { present, url } = await link(api)
  assert.deepEqual([present, url.origin], [false, api.url])
  const archive = Buffer.from(randomBytes(20 * 1024 * 1024))
  assert.equal((await put(url, archive)).status, 201)
  assert.ok(api.node.builds.files.get(`${api.ours.teamId}/${hash}`)?.equals(archive))
  const { pieces, largestPiece } = api.node.builds.lastTransfer
  assert.ok(pieces >= 80 && largestPiece <= 256 * 1024)
  const again = await link(api)
  assert.equal(again.present, true)
  // Clients may upload again, with any content type.
  const type = { 'content-type': 'application/gzip' }
  assert.equal((await put(again.url, Buffer.from('new'), type)).status, 201)
  const json = { 'content-type': 'application/json' }
  assert.equal((await put(again.url, Buffer.from('{'), json)).status, 201)
})

test('files of one team are invisible to others', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  await put((await link(api)).url, Buffer.from('ours'))
  const headers = { 'x-api-key': api.theirs.apiKey }
  await api.call('POST', '/v3/templates', { headers, body: { name: 'mine' } })
  assert.equal((await link(api, headers)).present, false)
})

test('the URL is that by which the caller reached the server', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  const origins: string[] = []
  for (const proto of ['https', 'http', 'https, http', 'javascript']) {
    origins.push((await link(api, { 'x-forwarded-proto': proto })).url.protocol)
  }
  assert.deepEqual(origins, ['https:', 'http:', 'https:', 'http:'])
})

const changes: Readonly<Record<string, (url: URL, api: ApiUnderTest) => void>> = {
  'another hash': (url) => void (url.pathname = url.pathname.replaceAll('ab', 'cd')),
  'another team': (url, api) => url.searchParams.set('team', api.theirs.teamId),
  'more time': (url) =>
    url.searchParams.set('expires', String(Number(url.searchParams.get('expires')) + 1)),
  'another signature': (url) => url.searchParams.set('signature', '0'.repeat(64)),
  'an empty signature': (url) => url.searchParams.set('signature', ''),
}

for (const [what, change] of Object.entries(changes)) {
  test(`a URL with ${what} is refused`, async () => {
    await using api = await startApiUnderTest()
    await requestBuild(api)
    const { url } = await link(api)
    change(url, api)
    const { status, message } = await put(url, Buffer.from('evil'))
    assert.equal(status, 403)
    assert.match(message, /signature of the URL is wrong/)
    assert.equal(api.node.builds.files.size, 0)
  })
}

test('a URL without its parameters is refused', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  for (const name of ['team', 'expires', 'signature']) {
    const { url } = await link(api)
    url.searchParams.delete(name)
    assert.equal((await put(url, Buffer.from('x'))).status, 400)
    url.searchParams.append(name, 'a')
    url.searchParams.append(name, 'b')
    assert.equal((await put(url, Buffer.from('x'))).status, 400)
  }
  assert.equal(api.node.builds.files.size, 0)
})

test('a URL serves for 30 minutes', async () => {
  const clock = manualClock()
  await using api = await startApiUnderTest({ clock })
  await requestBuild(api)
  const { url } = await link(api)
  clock.advance(30 * 60 - 1)
  assert.equal((await put(url, Buffer.from('x'))).status, 201)
  clock.advance(1)
  const { status, message } = await put(url, Buffer.from('x'))
  assert.equal(status, 403)
  assert.match(message, /older than 30 minutes/)
})

test('an archive that is too large is refused before it is read, one of the largest size is not', async () => {
  await using api = await startApiUnderTest({ env: { ATOLL_MAX_BUILD_FILES_MB: '1' } })
  await requestBuild(api)
  const { url } = await link(api)
  const { status, message } = await put(url, Buffer.alloc(1024 * 1024 + 1))
  assert.equal(status, 413)
  assert.match(message, /at most 1 MiB/)
  assert.equal(api.node.begun('putFiles'), 0)
  assert.equal((await put(url, Buffer.alloc(1024 * 1024))).status, 201)
})

/** Opens a raw upload with full control over headers and body. */
function open(url: URL, headers: Record<string, string>) {
  const sender = request(url, { method: 'PUT', headers })
  const status = new Promise<number | undefined>((resolve) => {
    sender.once('response', (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    sender.once('error', () => resolve(undefined))
  })
  return { sender, status }
}

test('an archive of unknown length is refused', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  const { sender, status } = open((await link(api)).url, { 'transfer-encoding': 'chunked' })
  sender.end('x')
  assert.equal(await status, 411)
  assert.equal(api.node.builds.files.size, 0)
})

test('a client that disconnects during the upload leaves nothing', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  const { sender, status } = open((await link(api)).url, { 'content-length': '1000' })
  sender.write('x')
  await waitFor('the transfer', () => api.node.begun('putFiles') === 1)
  sender.destroy()
  assert.equal(await status, undefined)
  assert.equal((await link(api)).present, false)
})

test('the client gets the reason why the node refused the files', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  const { url } = await link(api)
  for (const [code, expected] of [
    [Code.ResourceExhausted, 507],
    [Code.InvalidArgument, 400],
    [Code.Internal, 500],
  ] as const) {
    api.node.fail('putFiles', code)
    assert.equal((await put(url, Buffer.alloc(5 * 1024 * 1024))).status, expected)
  }
})

test('a malformed hash and an unknown template are refused; without the node it is unavailable', async () => {
  await using api = await startApiUnderTest()
  await requestBuild(api)
  const statusOf = async (path: string) => (await api.call('GET', path)).status
  assert.equal(await statusOf('/templates/mine/files/xyz'), 400)
  assert.equal(await statusOf(`/templates/mine/files/${hash.toUpperCase()}`), 400)
  assert.equal(await statusOf(`/templates/unknown/files/${hash}`), 404)
  api.node.failAll(Code.Unavailable)
  assert.equal(await statusOf(`/templates/mine/files/${hash}`), 503)
})
