import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { createPlatformClient } from './platform.ts'
import { transfer } from './transfer.ts'

async function setup(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close().closeAllConnections())
  const address = server.address()
  return `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
}

async function* zeros(count: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < count; sent += 1) yield Buffer.alloc(64 * 1024)
}

test('an upload announces its size and arrives whole', async (t) => {
  const url = await setup(t, async (request, response) => {
    const { length } = await buffer(request)
    response.end(`${request.headers['content-length']} ${length}`)
  })
  const sizeBytes = 20 * 64 * 1024
  const body = { chunks: zeros(20), sizeBytes }
  const { status, content } = await transfer({ method: 'PUT', url, headers: {}, body })
  const text = Buffer.concat(await Array.fromAsync(content)).toString()
  assert.deepEqual([status, text], [200, `${sizeBytes} ${sizeBytes}`])
})

test('an upload that is refused before its end fails with the reason of the server', async (t) => {
  const url = await setup(t, (_request, response) => {
    response.writeHead(413).end(JSON.stringify({ code: 413, message: 'too large' }))
  })
  const client = createPlatformClient({ url })
  const archive = { chunks: zeros(1_000_000), sizeBytes: 1_000_000 * 64 * 1024 }
  await assert.rejects(client.uploadBuildFiles(url, archive), {
    name: 'Fault',
    message: 'too large',
  })
})

test('a failure while the body is read ends the upload with that failure', async (t) => {
  const url = await setup(t, () => {})
  const chunks = (async function* () {
    yield Buffer.alloc(10)
    throw new Error('the file is gone')
  })()
  const body = { chunks, sizeBytes: 100 }
  const upload = transfer({ method: 'PUT', url, headers: {}, body })
  await assert.rejects(upload, /the file is gone/)
})

test('a template that the team may not use looks absent', async (t) => {
  const url = await setup(t, (request, response) => {
    const status = request.url?.endsWith('private') ? 403 : request.url?.endsWith('own') ? 200 : 404
    response.writeHead(status).end('{}')
  })
  const client = createPlatformClient({ url })
  const names = ['own', 'private', 'none']
  const found = await Promise.all(names.map((name) => client.mayUseTemplate(name)))
  assert.deepEqual(found, [true, false, false])
})
