/** Hostile requests to the file endpoints. Each may cost its sender the connection, nothing more. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, readdir, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { measureCpuMs } from '@atoll/kit/cpu-time'
import { waitFor } from '@atoll/kit/wait'
import { filesUrl, send, setUpFiles } from '../../testing/file-requests.ts'
import { accessToken } from '../../testing/running-envd.ts'
import type { RunningEnvd } from '../../testing/running-envd.ts'

function open(envd: RunningEnvd, head: string) {
  const socket = connect(Number(new URL(envd.url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`${head}\r\nHost: x\r\nX-Access-Token: ${accessToken}\r\n`)
  return socket
}

test('malformed forms get a response and write nothing outside the folder', async (t) => {
  const { envd, folder, at } = await setUpFiles(t)
  const part = `--B\r\nContent-Disposition: form-data; name="file"; filename="${at('x')}"\r\n\r\n`
  const whole = Buffer.from(`${part}some content\r\n--B--\r\n`)
  let seed = 7
  const random = (limit: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % limit
  }
  for (let round = 0; round < 300; round += 1) {
    const body = Buffer.from(whole)
    const bytes = body.subarray(0, round % 3 === 0 ? random(body.length) : body.length)
    for (let flips = random(4); flips > 0; flips -= 1)
      bytes[random(bytes.length || 1)] = random(256)
    const headers = {
      'content-type': 'multipart/form-data; boundary=B',
      ...(round % 5 === 0 && { 'content-encoding': 'gzip' }),
    }
    const { status } = await send(envd, filesUrl({ path: at('target') }), {
      method: 'POST',
      headers,
      body: round % 10 === 0 ? gzipSync(bytes) : bytes,
    })
    assert.ok([200, 400, 500].includes(status ?? 0), String(status))
  }
  assert.deepEqual(await readdir(folder), ['target'])
})

test('a slow form upload is written as it arrives and blocks no other request', async (t) => {
  const { envd, at } = await setUpFiles(t)
  const slow = open(envd, 'POST /files HTTP/1.1')
  slow.write('Content-Type: multipart/form-data; boundary=B\r\nTransfer-Encoding: chunked\r\n\r\n')
  const say = (content: string) =>
    slow.write(`${Buffer.byteLength(content).toString(16)}\r\n${content}\r\n`)
  for (const letter of '--B\r\nContent-Disposition: form-data; name=file; filename=') say(letter)
  say(`"${at('slow')}"\r\n\r\nfirst`)
  const sizeOf = async (path: string) => (await stat(path).catch(() => undefined))?.size
  await waitFor('its beginning', async () => (await sizeOf(at('slow'))) === 'first'.length)
  assert.equal((await send(envd, filesUrl({ path: at('slow') }))).text, 'first')
  say(' and last\r\n--B--')
  slow.write('0\r\n\r\n')
  await once(slow, 'data')
  slow.destroy()
  assert.equal(await readFile(at('slow'), 'utf8'), 'first and last')
})

test('oversized request heads are rejected', async (t) => {
  const { envd } = await setUpFiles(t)
  const heads = [
    `GET /files?path=/${'x'.repeat(100_000)} HTTP/1.1`,
    `GET /files?path=/x HTTP/1.1\r\nX-Metadata-A: ${'x'.repeat(100_000)}`,
    `GET /files?path=/x HTTP/1.1\r\nRange: bytes=${'0-1,'.repeat(30_000)}`,
  ]
  for (const head of heads) {
    const socket = open(envd, head)
    socket.end('\r\n')
    // The response is sent while the request head still arrives, so a reset may come before it is read.
    assert.match(await text(socket).catch(() => 'reset'), /^HTTP\/1.1 431|^reset$/)
  }
  assert.equal((await send(envd, '/health')).status, 204)
})

test('hostile header values parse in linear time', async (t) => {
  const { envd, at } = await setUpFiles(t)
  const url = filesUrl({ path: at('x') })
  await send(envd, url, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: '0123456789',
  })
  const cpuMs = await measureCpuMs(async () => {
    for (const headers of [
      { 'accept-encoding': 'gzip;q=1.'.repeat(1500) },
      { 'accept-encoding': ' ,'.repeat(7000) },
      { range: `bytes=${'9'.repeat(14_000)}-` },
      { range: `bytes=${' '.repeat(14_000)}x` },
      { 'if-modified-since': 'M'.repeat(14_000) },
      { 'if-none-match': '"'.repeat(14_000) },
    ]) {
      const { status } = await send(envd, url, { headers })
      assert.ok([200, 416].includes(status ?? 0), JSON.stringify(headers).slice(0, 50))
    }
  })
  assert.ok(cpuMs < 5000, `${cpuMs} ms`)
})

test('a stalled download holds its file open and blocks nothing else', async (t) => {
  const { envd, at } = await setUpFiles(t)
  const body = Buffer.alloc(32 * 1024 * 1024)
  const headers = { 'content-type': 'application/octet-stream' }
  await send(envd, filesUrl({ path: at('big') }), { method: 'POST', headers, body })
  const stalled = Array.from({ length: 10 }, () => {
    const socket = open(envd, `GET ${filesUrl({ path: at('big') })} HTTP/1.1`)
    socket.pause()
    socket.write('\r\n')
    return socket
  })
  await Promise.all(stalled.map((socket) => once(socket, 'readable')))
  const grown = process.memoryUsage()
  assert.ok(grown.rss < 600 * 1024 * 1024, `${grown.rss} bytes`)
  assert.equal((await send(envd, filesUrl({ path: at('big') }))).bytes.length, body.length)
  for (const socket of stalled) socket.destroy()
})
