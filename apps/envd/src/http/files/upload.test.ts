/** POST /files with raw requests to a real envd. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
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
