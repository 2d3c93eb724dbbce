/** Limits of requests, against servers that are slow in different ways. The contract runs against a real store: `npm test -- --fleet`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createS3Store } from './s3-store.ts'

const idleMs = 4_000

async function setUp(t: TestContext, answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const store = createS3Store(
    {
      ...{ bucket: 'bucket', endpoint: `http://127.0.0.1:${address.port}`, region: 'us-east-1' },
      ...{ accessKeyId: 'id', secretAccessKey: 'secret', pathStyle: true, prefix: '' },
      keyFile: '/nonexistent',
    },
    { attempts: 1, idleMs },
  )
  t.after(() => {
    store.close()
    server.closeAllConnections()
    server.close()
  })
  return store
}

test('a store that takes a piece slowly gets it, though the whole takes longer than the limit', async (t) => {
  let taken = 0
  const store = await setUp(t, (request, response) => {
    const take = async () => {
      let since = 0
      for await (const chunk of request) {
        taken += chunk.length
        since += chunk.length
        // Sixteen waits of a tenth of the limit: longer than the limit together.
        if (since < 1024 * 1024) continue
        since = 0
        await sleep(idleMs / 10)
      }
      response.setHeader('etag', '"x"').end()
    }
    take().catch(() => response.destroy())
  })
  const body = Buffer.alloc(16 * 1024 * 1024, 'x')
  assert.equal(await store.create('key', body), true)
  assert.equal(taken, body.length)
})

test('a store that stops in the middle of an answer fails the read', async (t) => {
  const store = await setUp(t, (_request, response) => {
    response.setHeader('content-length', '100')
    response.write('half')
  })
  const stream = await store.open('key')
  assert.ok(stream)
  await assert.rejects(Array.fromAsync(stream), { reason: 'objects_unavailable' })
})

test('a store that takes the request and never answers fails it', async (t) => {
  const store = await setUp(t, (request) => void request.resume())
  await assert.rejects(store.create('key', Buffer.alloc(1024)), { reason: 'objects_unavailable' })
})

test('times are those of the server, whatever the clock of this machine says', async (t) => {
  const store = await setUp(t, (request, response) => {
    response.setHeader('date', 'Tue, 01 Jan 2030 00:00:10 GMT')
    response.setHeader('last-modified', 'Tue, 01 Jan 2030 00:00:00 GMT')
    response.statusCode = request.url?.includes('absent') === true ? 404 : 200
    response.end(request.method === 'HEAD' ? undefined : '<ListBucketResult></ListBucketResult>')
  })
  assert.equal(await store.nowMs(), Date.UTC(2030, 0, 1, 0, 0, 10))
  assert.equal(await store.ageMs('key'), 10_000)
  assert.equal(await store.ageMs('absent'), undefined)
})

test('without a time of the server, questions about times fail', async (t) => {
  const store = await setUp(t, (_request, response) => {
    response.sendDate = false
    response.end('<ListBucketResult></ListBucketResult>')
  })
  await assert.rejects(store.nowMs())
  await assert.rejects(store.ageMs('key'))
})
