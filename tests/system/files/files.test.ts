/** Files through the published SDK and signed URLs, and metrics and ports of a sandbox, on both runtimes. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { FileNotFoundError, InvalidArgumentError, NotEnoughSpaceError, Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { serverSource } from '../server-in-sandbox.ts'
import { send } from '../wire.ts'

const polling = { intervalMs: 100 }

for (const runtime of ['gvisor', 'runc'] as const) {
  suite(`files on ${runtime}`, () => {
    let installation: Installation
    let sandbox: Sandbox

    before(async () => {
      installation = await install({
        ATOLL_RUNTIME: runtime,
        ATOLL_BASE_CPU_COUNT: '1',
        ATOLL_BASE_MEMORY_MB: '512',
        ATOLL_BASE_DISK_SIZE_MB: '128',
      })
      sandbox = await Sandbox.create({ ...installation.connection, timeoutMs: 600_000 })
    })
    after(() => installation[Symbol.asyncDispose]())

    const hashOfFile = async (path: string) =>
      (await sandbox.commands.run(`sha256sum < '${path}'`)).stdout.split(' ')[0]
    const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

    test('text is written and read, in the home folder of the user and elsewhere', async () => {
      const info = await sandbox.files.write('a/folder/grün & more.txt', 'hello ü')
      assert.deepEqual(
        [info.name, info.path, info.type],
        ['grün & more.txt', '/home/user/a/folder/grün & more.txt', 'file'],
      )
      assert.equal(await sandbox.files.read('a/folder/grün & more.txt'), 'hello ü')
      const { stdout } = await sandbox.commands.run('stat -c "%U %G %a" a a/folder/*')
      assert.equal(stdout, 'user user 755\nuser user 644\n')
      await sandbox.files.write('/root/of-root', 'r', { user: 'root' })
      const owner = await sandbox.commands.run('stat -c %U /root/of-root', { user: 'root' })
      assert.equal(owner.stdout, 'root\n')
      assert.equal(await sandbox.files.read('~/of-root', { user: 'root' }), 'r')
      assert.equal(await sandbox.files.read('~/a/folder/grün & more.txt'), 'hello ü')
    })

    test('an overwritten file keeps its mode and is truncated', async () => {
      await sandbox.commands.run('echo a long line > script && chmod 751 script')
      await sandbox.files.write('script', 'new')
      assert.equal((await sandbox.commands.run('stat -c "%a %s" script')).stdout, '751 3\n')
    })

    test('bytes from every kind of source arrive unchanged', async () => {
      const bytes = randomBytes(3_000_000)
      const stream = () => new Blob([bytes]).stream()
      const array = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
      await sandbox.files.write('from-array', array)
      await sandbox.files.write('from-blob', new Blob([bytes]))
      await sandbox.files.write('from-stream', stream())
      await sandbox.files.write('as-octets', array, { useOctetStream: true })
      await sandbox.files.write('packed', new Blob([bytes]), { gzip: true })
      await sandbox.files.write('packed-stream', stream(), { gzip: true })
      for (const name of ['array', 'blob', 'stream'].map((source) => `from-${source}`)) {
        assert.equal(await hashOfFile(name), hashOf(bytes), name)
      }
      for (const name of ['as-octets', 'packed', 'packed-stream']) {
        assert.equal(await hashOfFile(name), hashOf(bytes), name)
      }
      assert.equal(
        hashOf(await sandbox.files.read('from-blob', { format: 'bytes' })),
        hashOf(bytes),
      )
      const blob = await sandbox.files.read('from-blob', { format: 'blob', gzip: true })
      assert.equal(hashOf(await blob.bytes()), hashOf(bytes))
      const pieces = await Array.fromAsync(
        await sandbox.files.read('from-blob', { format: 'stream' }),
      )
      assert.equal(hashOf(Buffer.concat(pieces)), hashOf(bytes))
    })

    test('metadata stays with a file until the next upload', async () => {
      const metadata = { author: 'me', purpose: 'a test' }
      const info = await sandbox.files.write('tagged', 'x', { metadata })
      assert.deepEqual(info.metadata, metadata)
      assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, metadata)
      await sandbox.files.write('tagged', new Blob(['y']).stream(), { metadata: { Other: '1' } })
      assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, { other: '1' })
      await sandbox.files.write('tagged', 'z')
      const { metadata: metadataAfter } = await sandbox.files.getInfo('tagged')
      assert.deepEqual(metadataAfter ?? {}, {})
    })

    test('one request writes many files, including empty files', async () => {
      const files = Array.from({ length: 60 }, (_, i) => ({
        path: `many/${i % 7}/file ${i}`,
        data: i % 5 === 0 ? '' : `content ${i}`,
      }))
      const entries = await sandbox.files.write(files)
      assert.deepEqual(
        entries.map(({ path }) => path),
        files.map(({ path }) => `/home/user/${path}`),
      )
      assert.equal((await sandbox.commands.run('find many -type f | wc -l')).stdout.trim(), '60')
      assert.equal(await sandbox.files.read('many/0/file 0'), '')
      assert.equal((await sandbox.files.read('many/0/file 0', { format: 'bytes' })).length, 0)
      assert.equal(await sandbox.files.read('many/1/file 1'), 'content 1')
    })

    test('a missing file, a folder and a file that is too large have their own errors', async () => {
      await assert.rejects(sandbox.files.read('missing'), FileNotFoundError)
      await assert.rejects(sandbox.files.read('/home/user'), InvalidArgumentError)
      await assert.rejects(sandbox.files.write('/home/user', 'x'), InvalidArgumentError)
      await assert.rejects(sandbox.files.write('~other/x', 'x'), InvalidArgumentError)
      await sandbox.commands.run('mkfifo pipe && ln -s loop loop')
      await assert.rejects(sandbox.files.read('pipe'), InvalidArgumentError)
      await assert.rejects(sandbox.files.read('loop'))
      await assert.rejects(sandbox.files.write('script/x', 'x'))
      const large = new Blob([Buffer.alloc(140 * 1024 * 1024)])
      await assert.rejects(sandbox.files.write('large', large), NotEnoughSpaceError)
      await sandbox.commands.run('rm large')
      assert.equal(await sandbox.isRunning(), true)
    })

    test('a download URL needs no other credentials, and works only for the signed path', async () => {
      await sandbox.files.write('signed ü+.txt', 'signed')
      const url = await sandbox.downloadUrl('signed ü+.txt', { useSignatureExpiration: 60 })
      assert.ok(!url.includes(sandbox.sandboxId))
      const reply = await fetch(url)
      assert.deepEqual([reply.status, await reply.text()], [200, 'signed'])
      const partialReply = await fetch(url, { headers: { range: 'bytes=1-3' } })
      assert.deepEqual([partialReply.status, await partialReply.text()], [206, 'ign'])
      const rootUrl = await sandbox.downloadUrl('.bashrc', { user: 'root' })
      assert.equal((await fetch(rootUrl)).status, 200)

      const otherPathUrl = new URL(url)
      otherPathUrl.searchParams.set('path', '/etc/shadow')
      assert.equal((await fetch(otherPathUrl)).status, 401)
      const laterExpiryUrl = new URL(url)
      laterExpiryUrl.searchParams.set('signature_expiration', '99999999999')
      assert.equal((await fetch(laterExpiryUrl)).status, 401)
      assert.equal((await fetch(url, { method: 'POST', body: new FormData() })).status, 401)
    })

    test('a signature expires', async () => {
      await sandbox.files.write('brief', 'x')
      const url = await sandbox.downloadUrl('brief', { useSignatureExpiration: 1 })
      const { code, message } = await waitFor(
        'the signature to expire',
        async () => {
          const reply = await fetch(url)
          return reply.status === 200 ? false : JSON.parse(await reply.text())
        },
        polling,
      )
      assert.deepEqual([code, message], [401, 'signature is already expired'])
    })

    test('an upload URL accepts a form, for one path or for the file names in the form', async () => {
      const form = new FormData()
      form.append('file', new Blob(['by URL']))
      const url = await sandbox.uploadUrl('uploaded/by-url', { useSignatureExpiration: 60 })
      assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200)
      assert.equal(await sandbox.files.read('uploaded/by-url'), 'by URL')
      const formWithNames = new FormData()
      formWithNames.append('file', new Blob(['1']), 'uploaded/one')
      formWithNames.append('file', new Blob(['2']), '/tmp/two')
      const reply = await fetch(await sandbox.uploadUrl(), { method: 'POST', body: formWithNames })
      const entries: unknown = JSON.parse(await reply.text())
      assert.deepEqual(entries, [
        { path: '/home/user/uploaded/one', name: 'one', type: 'file' },
        { path: '/tmp/two', name: 'two', type: 'file' },
      ])
      assert.equal((await fetch(url)).status, 401)
    })

    test('signed URLs of two sandboxes each reach their own sandbox', async () => {
      const otherSandbox = await Sandbox.create(installation.connection)
      const writeOwnId = async (target: Sandbox) => {
        await target.files.write('/tmp/who', target.sandboxId)
        return target.downloadUrl('/tmp/who')
      }
      const urls = [await writeOwnId(sandbox), await writeOwnId(otherSandbox)]
      const bodies = await Promise.all(urls.map(async (url) => (await fetch(url)).text()))
      assert.deepEqual(bodies, [sandbox.sandboxId, otherSandbox.sandboxId])
      await otherSandbox.kill()
      assert.ok([401, 502].includes((await fetch(urls[1] ?? '')).status))
    })

    test('compose joins files, and clients with the token get metrics and variables', async () => {
      await sandbox.files.write('piece 1', 'one ')
      await sandbox.files.write('piece 2', 'two')
      const headers = {
        'e2b-sandbox-id': sandbox.sandboxId,
        'e2b-sandbox-port': '49983',
        'x-access-token': accessTokenOf(sandbox),
      }
      const reply = await send(installation.url, {
        method: 'POST',
        path: '/files/compose',
        headers,
        body: JSON.stringify({ source_paths: ['piece 1', 'piece 2'], destination: 'whole' }),
      })
      assert.deepEqual(reply.json, { path: '/home/user/whole', name: 'whole', type: 'file' })
      assert.equal(await sandbox.files.read('whole'), 'one two')
      await assert.rejects(sandbox.files.read('piece 1'), FileNotFoundError)

      const envsReply = await send(installation.url, { path: '/envs', headers })
      assert.equal(JSON.parse(envsReply.text)['E2B_SANDBOX_ID'], sandbox.sandboxId)
      const metrics = () =>
        send(installation.url, { path: '/metrics', headers }).then(({ text }) => JSON.parse(text))
      const idleMetrics = await metrics()
      const mebibyte = 1024 * 1024
      assert.deepEqual(
        [idleMetrics.cpu_count, idleMetrics.mem_total, idleMetrics.mem_total_mib],
        [1, 512 * mebibyte, 512],
      )
      assert.ok(
        idleMetrics.mem_used > 5 * mebibyte && idleMetrics.mem_used < idleMetrics.mem_total,
        JSON.stringify(idleMetrics),
      )
      assert.ok(idleMetrics.disk_total > 64 * mebibyte && idleMetrics.disk_total <= 128 * mebibyte)
      assert.ok(idleMetrics.disk_used > 0 && idleMetrics.disk_used < idleMetrics.disk_total)
      const busyLoop = await sandbox.commands.run('while :; do :; done', {
        background: true,
        timeoutMs: 0,
      })
      await waitFor('a busy CPU', async () => (await metrics()).cpu_used_pct > 20, polling)
      await busyLoop.kill()
      const wrongTokenHeaders = { ...headers, 'x-access-token': 'wrong' }
      assert.equal(
        (await send(installation.url, { path: '/metrics', headers: wrongTokenHeaders })).status,
        401,
      )
    })

    test('a server on loopback or on all addresses is reachable while it listens', async () => {
      await Promise.all(
        Object.entries({
          4101: '127.0.0.1',
          4102: 'localhost',
          4103: '::1',
          4104: '0.0.0.0',
          4105: '::',
        }).map(([port, host]) => serveAndRequest(port, host)),
      )
    })

    async function serveAndRequest(port: string, host: string): Promise<void> {
      const listen = `listen(${port}, '${host}'`
      const source = serverSource.replace('listen(Number(process.env.PORT)', listen)
      const server = await sandbox.commands.run('node -e "$SERVER"', {
        background: true,
        timeoutMs: 0,
        envs: { SERVER: source },
      })
      const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': port }
      const request = () => send(installation.url, { path: '/x', headers })
      await waitFor(`${host} to listen`, () => server.stdout.includes('listening'), polling)
      const isReachable = async () => (await request()).status === 200
      await waitFor(`${host} to answer`, isReachable, polling)
      assert.match((await request()).text, /^GET \/x /)
      await server.kill()
      const isClosed = async () => (await request()).status === 502
      await waitFor(`${host} to be closed`, isClosed, polling)
    }
  })
}

/** Reads a private field of the SDK: the SDK has no accessor for the token. */
function accessTokenOf(sandbox: Sandbox): string {
  const token: unknown = Reflect.get(sandbox, 'envdAccessToken')
  assert.ok(typeof token === 'string')
  return token
}
