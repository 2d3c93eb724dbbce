/** Files of a sandbox by the published SDK and by signed URLs, its metrics, and its ports, on both runtimes. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { FileNotFoundError, InvalidArgumentError, NotEnoughSpaceError, Sandbox } from 'e2b'
import { install } from '../installation.ts'
import type { Installation } from '../installation.ts'
import { serverSource } from '../server-in-sandbox.ts'
import { send } from '../wire.ts'

const patient = { intervalMs: 100 }

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

    const sum = async (path: string) =>
      (await sandbox.commands.run(`sha256sum < '${path}'`)).stdout.split(' ')[0]
    const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

    test('text is written and read, below the home of the user and wherever else', async () => {
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

    test('bytes of every kind of source arrive whole', async () => {
      const bytes = randomBytes(3_000_000)
      const stream = () => new Blob([bytes]).stream()
      const array = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
      await sandbox.files.write('from-array', array)
      await sandbox.files.write('from-blob', new Blob([bytes]))
      await sandbox.files.write('from-stream', stream())
      await sandbox.files.write('as-octets', array, { useOctetStream: true })
      await sandbox.files.write('packed', new Blob([bytes]), { gzip: true })
      await sandbox.files.write('packed-stream', stream(), { gzip: true })
      for (const name of ['array', 'blob', 'stream'].map((each) => `from-${each}`)) {
        assert.equal(await sum(name), sumOf(bytes), name)
      }
      for (const name of ['as-octets', 'packed', 'packed-stream']) {
        assert.equal(await sum(name), sumOf(bytes), name)
      }
      assert.equal(sumOf(await sandbox.files.read('from-blob', { format: 'bytes' })), sumOf(bytes))
      const blob = await sandbox.files.read('from-blob', { format: 'blob', gzip: true })
      assert.equal(sumOf(await blob.bytes()), sumOf(bytes))
      const pieces = await Array.fromAsync(
        await sandbox.files.read('from-blob', { format: 'stream' }),
      )
      assert.equal(sumOf(Buffer.concat(pieces)), sumOf(bytes))
    })

    test('metadata stays with a file until the next upload', async () => {
      const metadata = { author: 'me', purpose: 'a test' }
      const written = await sandbox.files.write('tagged', 'x', { metadata })
      assert.deepEqual(written.metadata, metadata)
      assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, metadata)
      await sandbox.files.write('tagged', new Blob(['y']).stream(), { metadata: { Other: '1' } })
      assert.deepEqual((await sandbox.files.getInfo('tagged')).metadata, { other: '1' })
      await sandbox.files.write('tagged', 'z')
      const { metadata: left } = await sandbox.files.getInfo('tagged')
      assert.deepEqual(left ?? {}, {})
    })

    test('one request writes many files, also empty ones', async () => {
      const files = Array.from({ length: 60 }, (_, i) => ({
        path: `many/${i % 7}/file ${i}`,
        data: i % 5 === 0 ? '' : `content ${i}`,
      }))
      const written = await sandbox.files.write(files)
      assert.deepEqual(
        written.map(({ path }) => path),
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
      const part = await fetch(url, { headers: { range: 'bytes=1-3' } })
      assert.deepEqual([part.status, await part.text()], [206, 'ign'])
      const forRoot = await sandbox.downloadUrl('.bashrc', { user: 'root' })
      assert.equal((await fetch(forRoot)).status, 200)

      const elsewhere = new URL(url)
      elsewhere.searchParams.set('path', '/etc/shadow')
      assert.equal((await fetch(elsewhere)).status, 401)
      const longer = new URL(url)
      longer.searchParams.set('signature_expiration', '99999999999')
      assert.equal((await fetch(longer)).status, 401)
      assert.equal((await fetch(url, { method: 'POST', body: new FormData() })).status, 401)
    })

    test('a signature expires', async () => {
      await sandbox.files.write('brief', 'x')
      const url = await sandbox.downloadUrl('brief', { useSignatureExpiration: 1 })
      const { code, message } = await waitFor(
        'the end',
        async () => {
          const reply = await fetch(url)
          return reply.status === 200 ? false : JSON.parse(await reply.text())
        },
        patient,
      )
      assert.deepEqual([code, message], [401, 'signature is already expired'])
    })

    test('an upload URL takes a form, for a path or for the names in the form', async () => {
      const form = new FormData()
      form.append('file', new Blob(['by URL']))
      const url = await sandbox.uploadUrl('uploaded/by-url', { useSignatureExpiration: 60 })
      assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200)
      assert.equal(await sandbox.files.read('uploaded/by-url'), 'by URL')
      const free = new FormData()
      free.append('file', new Blob(['1']), 'uploaded/one')
      free.append('file', new Blob(['2']), '/tmp/two')
      const reply = await fetch(await sandbox.uploadUrl(), { method: 'POST', body: free })
      const entries: unknown = JSON.parse(await reply.text())
      assert.deepEqual(entries, [
        { path: '/home/user/uploaded/one', name: 'one', type: 'file' },
        { path: '/tmp/two', name: 'two', type: 'file' },
      ])
      assert.equal((await fetch(url)).status, 401)
    })

    test('signed URLs of two sandboxes each reach their own sandbox', async () => {
      const other = await Sandbox.create(installation.connection)
      const own = async (each: Sandbox) => {
        await each.files.write('/tmp/who', each.sandboxId)
        return each.downloadUrl('/tmp/who')
      }
      const urls = [await own(sandbox), await own(other)]
      const answers = await Promise.all(urls.map(async (url) => (await fetch(url)).text()))
      assert.deepEqual(answers, [sandbox.sandboxId, other.sandboxId])
      await other.kill()
      assert.ok([401, 502].includes((await fetch(urls[1] ?? '')).status))
    })

    test('pieces are joined, and clients with the token get metrics and variables', async () => {
      await sandbox.files.write('piece 1', 'one ')
      await sandbox.files.write('piece 2', 'two')
      const headers = {
        'e2b-sandbox-id': sandbox.sandboxId,
        'e2b-sandbox-port': '49983',
        'x-access-token': accessTokenOf(sandbox),
      }
      const composed = await send(installation.url, {
        method: 'POST',
        path: '/files/compose',
        headers,
        body: JSON.stringify({ source_paths: ['piece 1', 'piece 2'], destination: 'whole' }),
      })
      assert.deepEqual(composed.json, { path: '/home/user/whole', name: 'whole', type: 'file' })
      assert.equal(await sandbox.files.read('whole'), 'one two')
      await assert.rejects(sandbox.files.read('piece 1'), FileNotFoundError)

      const envs = await send(installation.url, { path: '/envs', headers })
      assert.equal(JSON.parse(envs.text)['E2B_SANDBOX_ID'], sandbox.sandboxId)
      const metrics = () =>
        send(installation.url, { path: '/metrics', headers }).then(({ text }) => JSON.parse(text))
      const idle = await metrics()
      const mebibyte = 1024 * 1024
      assert.deepEqual(
        [idle.cpu_count, idle.mem_total, idle.mem_total_mib],
        [1, 512 * mebibyte, 512],
      )
      assert.ok(
        idle.mem_used > 5 * mebibyte && idle.mem_used < idle.mem_total,
        JSON.stringify(idle),
      )
      assert.ok(idle.disk_total > 64 * mebibyte && idle.disk_total <= 128 * mebibyte)
      assert.ok(idle.disk_used > 0 && idle.disk_used < idle.disk_total)
      const spinning = await sandbox.commands.run('while :; do :; done', { background: true })
      await waitFor('a busy CPU', async () => (await metrics()).cpu_used_pct > 20, patient)
      await spinning.kill()
      const without = { ...headers, 'x-access-token': 'wrong' }
      assert.equal(
        (await send(installation.url, { path: '/metrics', headers: without })).status,
        401,
      )
    })

    test('a server on loopback is reachable like any other, as long as it listens', async () => {
      await Promise.all(
        Object.entries({
          4101: '127.0.0.1',
          4102: 'localhost',
          4103: '::1',
          4104: '0.0.0.0',
          4105: '::',
        }).map(([port, host]) => serveAndAsk(port, host)),
      )
    })

    async function serveAndAsk(port: string, host: string): Promise<void> {
      const listen = `listen(${port}, '${host}'`
      const source = serverSource.replace('listen(Number(process.env.PORT)', listen)
      const server = await sandbox.commands.run('node -e "$SERVER"', {
        background: true,
        envs: { SERVER: source },
      })
      const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': port }
      const ask = () => send(installation.url, { path: '/x', headers })
      await waitFor(`${host} to listen`, () => server.stdout.includes('listening'), patient)
      const isThere = async () => (await ask()).status === 200
      await waitFor(`${host} to answer`, isThere, patient)
      assert.match((await ask()).text, /^GET \/x /)
      await server.kill()
      const isGone = async () => (await ask()).status === 502
      await waitFor(`${host} to be closed`, isGone, patient)
    }
  })
}

/** The SDK keeps it to itself, and shows it in what it sends. */
function accessTokenOf(sandbox: Sandbox): string {
  const token: unknown = Reflect.get(sandbox, 'envdAccessToken')
  assert.ok(typeof token === 'string')
  return token
}
