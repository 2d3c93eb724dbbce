import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { explainClientErrors } from './client-error.ts'

const server = createServer((req, res) => {
  if (req.url === '/slow') res.write('so far')
  else res.end('fine')
})
before(async () => {
  explainClientErrors(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
after(() => server.close())

/** Sends each text once the response to the previous one has started; returns everything received. */
async function talk(...texts: string[]): Promise<string> {
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const socket = connect(address.port, '127.0.0.1')
  socket.on('error', () => {}) // 'close' follows every error
  const closed = once(socket, 'close')
  let received = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    received += text
    const next = texts.shift()
    if (next !== undefined) socket.write(next)
  })
  socket.write(texts.shift() ?? '')
  await closed
  return received
}

const fine = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const huge = `GET / HTTP/1.1\r\nHost: a\r\nX-Junk: ${'x'.repeat(20_000)}\r\n\r\n`

test('headers that are too large get a status and the limit', async () => {
  const answer = await talk(huge)
  assert.match(answer, /^HTTP\/1\.1 431 .*\r\n/)
  assert.match(answer, /\r\n\r\n\{"code":431,"message":"The headers are too large: at most 16 KiB/)
})

test('so does a second request on the same connection', async () => {
  const answer = await talk(fine, huge)
  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.match(answer, /HTTP\/1\.1 431 /)
})

test('a client that keeps sending still reads the answer', async () => {
  assert.match(await talk(huge.replace('X-Junk', `X-More: ${'x'.repeat(4_000_000)}`)), / 431 /)
})

for (const text of ['nonsense\r\n\r\n', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', '\x16\x03\x01\x00']) {
  test(`${JSON.stringify(text)} is answered: not HTTP`, async () => {
    const answer = await talk(text)
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/)
    assert.match(answer, /"code":400,"message":"This is not a request of HTTP\/1\.1/)
  })
}

test('nothing is written into an answer that is under way', async () => {
  const answer = await talk('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n', 'nonsense\r\n\r\n')
  assert.match(answer, /so far/)
  assert.doesNotMatch(answer, / 400 |not a request/)
})
