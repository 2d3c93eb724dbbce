/** GET /files with raw requests to a real envd. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { run } from '@atoll/kit/run'
import { filesUrl, send, setUpFiles as setup } from '../../testing/file-requests.ts'
import { accessToken } from '../../testing/running-envd.ts'

test('a download has the content, type, name, length and time of the file', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile(at('page.html'), '<p>hello')
  const { status, headers, text } = await send(envd, filesUrl({ path: at('page.html') }))
  assert.deepEqual([status, text], [200, '<p>hello'])
  assert.equal(headers['content-type'], 'text/html; charset=utf-8')
  assert.equal(headers['content-disposition'], 'inline; filename=page.html')
  assert.equal(headers['content-length'], '8')
  assert.equal(headers['accept-ranges'], 'bytes')
  assert.equal(headers['vary'], 'Accept-Encoding')
  assert.equal(headers['last-modified'], (await stat(at('page.html'))).mtime.toUTCString())
})

const encodings: [string, number, string | undefined][] = [
  ['gzip, deflate', 200, 'gzip'],
  ['gzip, deflate, br', 200, 'gzip'],
  ['GZIP', 200, 'gzip'],
  ['br', 200, undefined],
  ['identity', 200, undefined],
  ['*', 200, undefined],
  ['gzip;q=0.5, identity;q=0.8', 200, undefined],
  ['gzip;q=0.8, identity;q=0.5', 200, 'gzip'],
  ['gzip;q=0', 200, undefined],
  ['gzip;q=0, *;q=0', 406, undefined],
  ['identity;q=0', 406, undefined],
  ['br, *;q=0', 406, undefined],
  ['gzip, identity;q=0', 200, 'gzip'],
  ['*, identity;q=0', 200, 'gzip'],
  [',;q=1,,', 200, undefined],
]

test('Accept-Encoding weights choose the encoding', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile(at('data'), 'x'.repeat(100_000))
  for (const [wish, status, coding] of encodings) {
    const reply = await send(envd, filesUrl({ path: at('data') }), {
      headers: { 'accept-encoding': wish },
    })
    assert.deepEqual([wish, reply.status], [wish, status])
    assert.equal(reply.headers['content-encoding'], coding, wish)
    if (status !== 200) continue
    const content = coding ? gunzipSync(reply.bytes) : reply.bytes
    assert.equal(content.length, 100_000)
    assert.equal(reply.headers['content-length'], coding ? undefined : '100000')
    const type = coding ? 'application/octet-stream' : 'text/plain; charset=utf-8'
    assert.equal(reply.headers['content-type'], type)
  }
})

test('incompressible data is sent as gzip without compression', async (t) => {
  const { envd, at } = await setup(t)
  await run('dd', ['if=/dev/urandom', `of=${at('noise')}`, 'bs=1000000', 'count=1', 'status=none'])
  const headers = { 'accept-encoding': 'gzip' }
  const { bytes } = await send(envd, filesUrl({ path: at('noise') }), { headers })
  assert.deepEqual(gunzipSync(bytes), await readFile(at('noise')))
})

const past = 'Sat, 01 Jan 2000 00:00:00 GMT'
const future = 'Thu, 01 Jan 2099 00:00:00 GMT'
const exactCalls: [Record<string, string>, number, string, Record<string, string>?][] = [
  [{ range: 'bytes=0-3' }, 206, '0123', { 'content-range': 'bytes 0-3/10', 'content-length': '4' }],
  [{ range: 'bytes=8-' }, 206, '89', { 'content-range': 'bytes 8-9/10' }],
  [{ range: 'bytes=-3' }, 206, '789', { 'content-range': 'bytes 7-9/10' }],
  [{ range: 'bytes=-30' }, 206, '0123456789', { 'content-range': 'bytes 0-9/10' }],
  [{ range: 'bytes=5-500' }, 206, '56789', { 'content-range': 'bytes 5-9/10' }],
  [{ range: 'bytes=10-' }, 416, '', { 'content-range': 'bytes */10' }],
  [{ range: 'bytes=5-4' }, 416, ''],
  [{ range: 'bytes=-0' }, 416, ''],
  [{ range: 'bytes=x' }, 416, ''],
  [{ range: 'bytes=-' }, 416, ''],
  [{ range: 'lines=1-2' }, 200, '0123456789'],
  [{ range: 'bytes=0-1,3-4' }, 200, '0123456789'],
  [{ range: 'bytes=0-3', 'accept-encoding': 'gzip' }, 206, '0123'],
  [{ range: 'bytes=0-3', 'accept-encoding': 'gzip, identity;q=0' }, 406, ''],
  [{ range: 'bytes=0-3', 'if-range': past }, 200, '0123456789'],
  [{ range: 'bytes=0-3', 'if-range': '"tag"' }, 200, '0123456789'],
  [{ 'if-modified-since': future, 'accept-encoding': 'gzip' }, 304, ''],
  [{ 'if-modified-since': past }, 200, '0123456789'],
  [{ 'if-modified-since': 'nonsense' }, 200, '0123456789'],
  [{ 'if-none-match': '*' }, 304, ''],
  [{ 'if-none-match': '"tag"', 'if-modified-since': future }, 200, '0123456789'],
  [{ 'if-unmodified-since': past }, 412, ''],
  [{ 'if-match': '"tag"' }, 412, ''],
  [{ 'if-match': '*' }, 200, '0123456789'],
]

test('ranges and conditions refer to the uncompressed bytes', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile(at('ten'), '0123456789')
  const url = filesUrl({ path: at('ten') })
  for (const [headers, status, body, expected = {}] of exactCalls) {
    const reply = await send(envd, url, { headers })
    const what = JSON.stringify(headers)
    assert.equal(reply.status, status, what)
    if (status < 400) assert.equal(reply.text, body, what)
    for (const [name, value] of Object.entries(expected)) {
      assert.equal(reply.headers[name], value, what)
    }
  }
  const { headers } = await send(envd, url)
  const again = { 'if-range': String(headers['last-modified']), range: 'bytes=2-3' }
  assert.equal((await send(envd, url, { headers: again })).text, '23')
})

test('HEAD returns the headers of GET without a body, and needs the token', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile(at('ten'), '0123456789')
  const head = await send(envd, filesUrl({ path: at('ten') }), { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, '10', ''])
  const url = `${envd.url}${filesUrl({ path: at('ten'), signature: 'v1_x' })}`
  const response = await fetch(url, { method: 'HEAD' })
  assert.equal(response.status, 401)
})

test('an empty file is sent as empty for any range', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile(at('empty'), '')
  const whole = await send(envd, filesUrl({ path: at('empty') }))
  assert.deepEqual([whole.status, whole.headers['content-length'], whole.text], [200, '0', ''])
  const part = await send(envd, filesUrl({ path: at('empty') }), {
    headers: { range: 'bytes=0-9' },
  })
  assert.equal(part.status, 200)
  const packed = await send(envd, filesUrl({ path: at('empty') }), {
    headers: { 'accept-encoding': 'gzip' },
  })
  assert.equal(gunzipSync(packed.bytes).length, 0)
})

test('Content-Disposition encodes quotes and names that are not ASCII', async (t) => {
  const { envd, at } = await setup(t)
  const names: [string, string][] = [
    ['plain-1.txt', 'inline; filename=plain-1.txt'],
    ['two words', 'inline; filename="two words"'],
    ['a"b\\c', String.raw`inline; filename="a\"b\\c"`],
    ['grün é.txt', "inline; filename*=utf-8''gr%C3%BCn%20%C3%A9.txt"],
  ]
  for (const [name, disposition] of names) {
    await writeFile(at(name), 'x')
    const { status, headers } = await send(envd, filesUrl({ path: at(name) }))
    assert.deepEqual([status, headers['content-disposition']], [200, disposition])
  }
})

test('files in /proc without a size are sent completely', async (t) => {
  const { envd } = await setup(t)
  const { status, headers, text } = await send(envd, filesUrl({ path: '/proc/version' }))
  assert.deepEqual([status, headers['content-length']], [200, undefined])
  assert.equal(text, await readFile('/proc/version', 'utf8'))
})

test('each kind of unreadable path has its own status', async (t) => {
  const { envd, folder, at } = await setup(t)
  await run('mkfifo', [at('pipe')])
  await symlink(at('loop'), at('loop'))
  await symlink('/nowhere', at('dangling'))
  const cases: [string, Record<string, string>, number][] = [
    ['missing', { path: at('missing') }, 404],
    ['a dangling link', { path: at('dangling') }, 404],
    ['a folder', { path: folder }, 400],
    ['an empty path, the home of root', {}, 400],
    ['another home', { path: '~anna/x' }, 400],
    ['a pipe', { path: at('pipe') }, 400],
    ['a device', { path: '/dev/zero' }, 400],
    ['a terminal', { path: '/dev/tty' }, 400],
    ['a NUL', { path: '/tmp/a\0b' }, 400],
    ['5,000 characters', { path: `/${'x'.repeat(5000)}` }, 400],
    ['a long path of short names', { path: '/x'.repeat(3000) }, 400],
    ['a loop of links', { path: at('loop') }, 500],
    ['a file as a folder', { path: '/etc/passwd/x' }, 500],
    ['an unknown user', { path: '/etc/passwd', username: 'ghost' }, 401],
  ]
  for (const [what, query, status] of cases) {
    const reply = await send(envd, filesUrl(query))
    assert.equal(reply.status, status, what)
    const { code, message } = JSON.parse(reply.text)
    assert.equal(code, status, what)
    assert.ok(message.length < 400 && message.length > 5, what)
  }
})

test('an ambiguous query is rejected in plain text', async (t) => {
  const { envd } = await setup(t)
  const queries = [
    '?path=/a&path=/b',
    '?path=%ff',
    '?path=%zz',
    '?path=/a&signature_expiration=soon',
    '?path=/a&signature_expiration=1.5',
    '?path=/a&signature_expiration=',
  ]
  for (const query of queries) {
    const reply = await send(envd, `/files${query}`)
    assert.equal(reply.status, 400, query)
    assert.match(String(reply.headers['content-type']), /^text\/plain/)
  }
})

test('relative paths start at the home of the user in the query or header', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile('/tmp/of-anna-for-tests', 'hers')
  t.after(() => run('rm', ['-f', '/tmp/of-anna-for-tests']))
  const url = filesUrl({ path: 'of-anna-for-tests', username: 'anna' })
  assert.equal((await send(envd, url)).text, 'hers')
  const inHome = await send(envd, filesUrl({ path: '~/of-anna-for-tests' }), envd.as('anna'))
  assert.equal(inHome.text, 'hers')
  await envd.init({ accessToken, defaultUser: 'anna' })
  assert.equal((await send(envd, filesUrl({ path: 'of-anna-for-tests' }))).text, 'hers')
  const unknown = await send(envd, filesUrl({ path: at('x') }), envd.as('ghost'))
  assert.deepEqual([unknown.status, JSON.parse(unknown.text).code], [401, 'unauthenticated'])
})

test('truncating a file during a download aborts it, appending does not', async (t) => {
  const { envd, at } = await setup(t)
  const size = 64 * 1024 * 1024
  await writeFile(at('big'), '')
  await truncate(at('big'), size)
  const read = async () => {
    const outgoing = request(`${envd.url}${filesUrl({ path: at('big') })}`, {
      agent: false,
      headers: { 'x-access-token': accessToken },
    })
    outgoing.end()
    const [response]: IncomingMessage[] = await once(outgoing, 'response')
    assert.ok(response)
    return response
  }
  const growing = await read()
  await truncate(at('big'), size * 2)
  assert.equal((await buffer(growing)).length, size)
  await truncate(at('big'), size)
  const shrinking = await read()
  await truncate(at('big'), 10)
  await assert.rejects(buffer(shrinking), /aborted/)
  assert.equal((await send(envd, '/health')).status, 204)
})
