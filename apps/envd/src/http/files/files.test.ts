/** GET and POST /files with raw requests to a real envd. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { run } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { filesUrl, send, setUpFiles as setup } from '../../testing/file-requests.ts'
import { accessToken } from '../../testing/running-envd.ts'

function form(...parts: readonly { head: string; content: string | Buffer }[]) {
  const pieces = parts.flatMap(({ head, content }) => [
    Buffer.from(`--edge\r\nContent-Disposition: ${head}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ])
  return {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=edge' },
    body: Buffer.concat([...pieces, Buffer.from('--edge--\r\n')]),
  }
}

function fileParts(files: Readonly<Record<string, string | Buffer>>) {
  return form(
    ...Object.entries(files).map(([name, content]) => ({
      head: `form-data; name="file"; filename="${name}"`,
      content,
    })),
  )
}

const octets = { 'content-type': 'application/octet-stream' }

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

test('a form upload writes each file, creates folders, and sets the owner', async (t) => {
  const { envd, at } = await setup(t)
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 256))
  const files = { [at('a/b/one.bin')]: content, [at('zwei ü.txt')]: 'two\r\n--edg', [at('c')]: '' }
  const reply = await send(envd, filesUrl({ username: 'anna' }), fileParts(files))
  assert.equal(reply.status, 200)
  assert.deepEqual(JSON.parse(reply.text), [
    { path: at('a/b/one.bin'), name: 'one.bin', type: 'file' },
    { path: at('zwei ü.txt'), name: 'zwei ü.txt', type: 'file' },
    { path: at('c'), name: 'c', type: 'file' },
  ])
  assert.deepEqual(await readFile(at('a/b/one.bin')), content)
  assert.equal(await readFile(at('zwei ü.txt'), 'utf8'), 'two\r\n--edg')
  for (const [name, mode] of [
    ['a', 0o755],
    ['a/b', 0o755],
    ['a/b/one.bin', 0o644],
    ['c', 0o644],
  ] as const) {
    const { uid, gid, mode: found } = await stat(at(name))
    assert.deepEqual([name, uid, gid, found & 0o777], [name, 4242, 4242, mode])
  }
  assert.equal((await stat(at('.'))).uid, 0)
})

test('the path in the query overrides the filename, which is then optional', async (t) => {
  const { envd, at } = await setup(t)
  const named = { head: 'form-data; name="file"; filename="/other"', content: '1' }
  await send(envd, filesUrl({ path: at('x') }), form(named))
  assert.equal(await readFile(at('x'), 'utf8'), '1')
  const bare = { head: 'form-data; name=file', content: '2' }
  assert.equal((await send(envd, filesUrl({ path: at('x') }), form(bare))).status, 200)
  assert.equal(await readFile(at('x'), 'utf8'), '2')
  assert.equal((await send(envd, '/files', form(bare))).status, 400)
})

test('other form parts are ignored', async (t) => {
  const { envd, at } = await setup(t)
  const other = { head: 'form-data; name="comment"', content: 'x'.repeat(200_000) }
  const odd = { head: 'attachment; name="file"; filename="/tmp/odd"', content: 'x' }
  const file = { head: `form-data; name="file"; filename*=utf-8''${at('%C3%BC')}`, content: 'y' }
  const reply = await send(envd, '/files', form(other, odd, file, other))
  assert.deepEqual(JSON.parse(reply.text), [{ path: at('ü'), name: 'ü', type: 'file' }])
  assert.deepEqual(JSON.parse((await send(envd, '/files', form(other))).text), [])
})

test('an octet-stream body is written as is, and gzip is decompressed', async (t) => {
  const { envd, at } = await setup(t)
  const content = Buffer.from('0123456789'.repeat(50_000))
  const url = filesUrl({ path: at('deep/er/file') })
  const plain = await send(envd, url, { method: 'POST', headers: octets, body: content })
  assert.equal(plain.status, 200)
  assert.deepEqual(await readFile(at('deep/er/file')), content)
  const headers = { ...octets, 'content-encoding': 'gzip' }
  const body = gzipSync('short')
  assert.equal((await send(envd, url, { method: 'POST', headers, body })).status, 200)
  assert.equal(await readFile(at('deep/er/file'), 'utf8'), 'short')
  const packedForm = fileParts({ [at('p')]: 'packed' })
  const reply = await send(envd, '/files', {
    method: 'POST',
    headers: { ...packedForm.headers, 'content-encoding': 'gzip' },
    body: gzipSync(packedForm.body),
  })
  assert.deepEqual([reply.status, await readFile(at('p'), 'utf8')], [200, 'packed'])
})

test('large bodies are written correctly, alone or in a form', async (t) => {
  const { envd, at } = await setup(t)
  const content = randomBytes(12 * 1024 * 1024)
  const alone = { method: 'POST', headers: octets, body: content }
  assert.equal((await send(envd, filesUrl({ path: at('alone') }), alone)).status, 200)
  const other = content.subarray(0, 3_333_333)
  const both = fileParts({ [at('one')]: content, [at('other')]: other })
  assert.equal((await send(envd, filesUrl({}), both)).status, 200)
  assert.ok((await readFile(at('alone'))).equals(content))
  assert.ok((await readFile(at('one'))).equals(content))
  assert.ok((await readFile(at('other'))).equals(other))
})

test('overwriting keeps the mode, follows symlinks and changes the owner', async (t) => {
  const { envd, at } = await setup(t)
  await writeFile(at('script'), 'a long first content')
  await chmod(at('script'), 0o751)
  await symlink(at('script'), at('link'))
  const url = filesUrl({ path: at('link'), username: 'anna' })
  await send(envd, url, { method: 'POST', headers: octets, body: 'new' })
  const { mode, uid } = await stat(at('script'))
  assert.deepEqual([mode & 0o777, uid], [0o751, 4242])
  assert.equal(await readFile(at('script'), 'utf8'), 'new')
})

test('metadata headers apply to every file of the upload', async (t) => {
  const { envd, at } = await setup(t)
  const parts = fileParts({ [at('a')]: '1', [at('b')]: '2' })
  const headers = { ...parts.headers, 'X-Metadata-Author': 'me', 'x-metadata-Of': 'both' }
  const reply = await send(envd, '/files', { ...parts, headers })
  const metadata = { author: 'me', of: 'both' }
  assert.deepEqual(JSON.parse(reply.text), [
    { path: at('a'), name: 'a', type: 'file', metadata },
    { path: at('b'), name: 'b', type: 'file', metadata },
  ])
})

test('invalid uploads are rejected with the right status', async (t) => {
  const { envd, folder, at } = await setup(t)
  await writeFile(at('file'), '')
  await run('mkfifo', [at('pipe')])
  await symlink(at('loop'), at('loop'))
  const post = (query: Record<string, string>, headers: Record<string, string>, body = 'x') =>
    send(envd, filesUrl(query), { method: 'POST', headers, body })
  const multipart = { 'content-type': 'multipart/form-data; boundary=edge' }
  const head = `form-data; name="file"; filename="${at('y')}"`
  const part = `--edge\r\nContent-Disposition: ${head}\r\n`
  const cases: [string, Record<string, string>, Record<string, string>, string, number][] = [
    ['no path', {}, octets, 'x', 400],
    ['plain text', { path: at('x') }, { 'content-type': 'text/plain' }, 'x', 400],
    ['no type', { path: at('x') }, {}, 'x', 400],
    ['a folder', { path: folder }, octets, 'x', 400],
    ['a new folder', { path: at('new/') }, octets, 'x', 400],
    ['another home', { path: '~anna/x' }, octets, 'x', 400],
    ['a pipe', { path: at('pipe') }, octets, 'x', 400],
    ['a device', { path: '/dev/null' }, octets, 'x', 400],
    ['a NUL', { path: at('a\0b') }, octets, 'x', 400],
    ['5,000 characters', { path: at('x'.repeat(5000)) }, octets, 'x', 400],
    ['a file as a folder', { path: at('file/x') }, octets, 'x', 500],
    ['a loop of links', { path: at('loop/x') }, octets, 'x', 500],
    ['an unknown user', { path: at('x'), username: 'ghost' }, octets, 'x', 401],
    ['an unknown coding', { path: at('x') }, { ...octets, 'content-encoding': 'br' }, 'x', 400],
    ['no gzip', { path: at('x') }, { ...octets, 'content-encoding': 'gzip' }, 'xxxx', 400],
    ['no boundary', {}, { 'content-type': 'multipart/form-data' }, part, 500],
    ['a form without an end', {}, multipart, `${part}\r\nabc`, 500],
    ['a part without an end of headers', {}, multipart, part, 500],
    ['no form at all', {}, multipart, 'nothing like it', 500],
    ['endless headers', {}, multipart, `${part}X: ${'y'.repeat(200_000)}`, 500],
    ['metadata beyond ASCII', { path: at('x') }, { ...octets, 'x-metadata-a': 'é' }, 'x', 400],
    [
      'metadata too long',
      { path: at('x') },
      { ...octets, 'x-metadata-a': 'v'.repeat(4096) },
      '',
      400,
    ],
    [
      'a long key',
      { path: at('x') },
      { ...octets, [`x-metadata-${'k'.repeat(247)}`]: 'v' },
      '',
      400,
    ],
  ]
  for (const [what, query, headers, body, status] of cases) {
    const reply = await post(query, headers, body)
    assert.deepEqual([what, reply.status], [what, status])
    const { code, message } = JSON.parse(reply.text)
    assert.equal(code, status, what)
    assert.ok(message.length < 400 && message.length > 5, message)
  }
})

test('a path that occurs twice in a form is rejected, and the first content stays', async (t) => {
  const { envd, at } = await setup(t)
  const head = `form-data; name="file"; filename="${at('x')}"`
  const reply = await send(
    envd,
    '/files',
    form({ head, content: 'first' }, { head, content: 'second' }),
  )
  assert.equal(reply.status, 400)
  assert.equal(await readFile(at('x'), 'utf8'), 'first')
})

test('an aborted upload leaves the bytes written so far, and envd continues', async (t) => {
  const { envd, at } = await setup(t)
  const gzip = { 'content-encoding': 'gzip' }
  const length = { 'content-length': '50000000' }
  for (const headers of [octets, { ...octets, ...gzip }, { ...octets, ...length }]) {
    const path = at(Object.keys(headers).join())
    const outgoing = request(`${envd.url}${filesUrl({ path })}`, {
      method: 'POST',
      headers: { 'x-access-token': accessToken, ...headers },
    })
    outgoing.on('error', () => {})
    const noise = Array.from({ length: 300_000 }, (_, i) => String(i)).join('')
    outgoing.write('content-encoding' in headers ? gzipSync(noise).subarray(0, 500_000) : noise)
    await waitFor('the beginning', async () => (await stat(path).catch(() => undefined))?.size)
    outgoing.destroy()
  }
  assert.equal((await send(envd, '/health')).status, 204)
})

test('a client gets the response to a body that is rejected midway', async (t) => {
  const { envd, folder } = await setup(t)
  const body = Buffer.alloc(8 * 1024 * 1024)
  const reply = await send(envd, filesUrl({ path: folder }), {
    method: 'POST',
    headers: octets,
    body,
  })
  assert.equal(reply.status, 400)
})

test('a full disk returns 507', async (t) => {
  const { envd, at } = await setup(t)
  await mkdir(at('small'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', at('small')])
  await using mounted = new AsyncDisposableStack()
  mounted.defer(async () => void (await run('umount', ['--lazy', at('small')])))
  const headers = { ...octets, 'content-encoding': 'gzip' }
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
  const call = { method: 'POST', headers, body: bomb }
  const reply = await send(envd, filesUrl({ path: at('small/bomb') }), call)
  assert.deepEqual([reply.status, JSON.parse(reply.text).code], [507, 507])
  const large = { method: 'POST', headers: octets, body: Buffer.alloc(16 * 1024 * 1024) }
  assert.equal((await send(envd, filesUrl({ path: at('small/large') }), large)).status, 507)
  const parts = fileParts({ [at('small/a')]: Buffer.alloc(100), [at('small/b')]: 'x' })
  assert.equal((await send(envd, '/files', parts)).status, 507)
})

test('concurrent uploads to one path all succeed, and one wins', async (t) => {
  const { envd, at } = await setup(t)
  const contents = Array.from({ length: 20 }, (_, i) => String(i % 10).repeat(100_000))
  const replies = await Promise.all(
    contents.map((body) =>
      send(envd, filesUrl({ path: at('one') }), { method: 'POST', headers: octets, body }),
    ),
  )
  assert.ok(replies.every(({ status }) => status === 200))
  assert.equal((await stat(at('one'))).size, 100_000)
})
