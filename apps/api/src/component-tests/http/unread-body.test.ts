import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** A client that sends its whole body before reading must still get the response. */

let api: ApiUnderTest
before(async () => void (api = await startApiUnderTest()))
after(() => api[Symbol.asyncDispose]())

/** Sends everything before reading; resolves with the response statuses. */
async function sendThenRead(head: string, body: Buffer): Promise<string[]> {
  const { hostname, port } = new URL(api.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const lines = ['POST /v2/sandboxes HTTP/1.1', 'Host: a', 'Content-Type: application/json', head]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.write(body, resolve)
  })
  // The connection must accept another request, unless the client asked to close it.
  if (!/^Connection: close/m.test(head)) {
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  }
  const answers = Buffer.concat(await Array.fromAsync(socket)).toString('utf8')
  return [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status ?? '')
}

const size = 17 * 1024 * 1024
const plain = Buffer.alloc(size, ' ')
const chunked = Buffer.concat([
  Buffer.from(`${size.toString(16)}\r\n`),
  plain,
  Buffer.from('\r\n0\r\n\r\n'),
])

for (const [name, framing, body] of [
  ['of a known length', `Content-Length: ${size}`, plain],
  ['in chunks', 'Transfer-Encoding: chunked', chunked],
] as const) {
  test(`a body ${name} that is too large is read to its end after the answer`, async () => {
    const head = `X-API-Key: ${api.ours.apiKey}\r\n${framing}`
    assert.deepEqual(await sendThenRead(head, body), ['413', '200'])
  })

  test(`so is a body ${name} on a connection that the client wants closed`, async () => {
    const head = `X-API-Key: ${api.ours.apiKey}\r\nConnection: close\r\n${framing}`
    assert.deepEqual(await sendThenRead(head, body), ['413'])
  })

  test(`a body ${name} of a caller without a key is refused too`, async () => {
    assert.deepEqual(await sendThenRead(framing, body), ['401', '200'])
  })
}
