import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { startTestEdge } from '../sim/test-edge.ts'

/** Uploads `megabytes` as fast as the peer reads, and records the response. */
function upload(port: number, headers: Record<string, string>, megabytes: number) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const given = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = megabytes * 1024 * 1024
  socket.write(
    `POST / HTTP/1.1\r\nHost: localhost\r\n${given.join('')}Content-Length: ${length}\r\n\r\n`,
  )
  const piece = Buffer.alloc(1024 * 1024, 'x')
  let left = megabytes
  const send = () => {
    let hasRoom = true
    for (; left > 0 && hasRoom; left -= 1) hasRoom = socket.write(piece)
    if (left === 0) socket.end()
    else socket.once('drain', send)
  }
  send()
  let received = ''
  let state = 'open'
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => (received += chunk))
  socket.on('end', () => (state = 'ended'))
  socket.on('error', () => (state = 'reset'))
  return { socket, received: () => received, state: () => state, sent: () => left === 0 }
}

async function setup(t: TestContext) {
  const testEdge = await startTestEdge()
  t.after(() => testEdge.close())
  return testEdge
}

for (const connection of ['close', 'keep-alive']) {
  test(`a client that uploads by Connection: ${connection} gets the whole error response`, async (t) => {
    const { edgePort } = await setup(t)
    const headers = { 'Svc-Sandbox-Id': 'nosuch', 'Svc-Sandbox-Port': '80', Connection: connection }
    for (let round = 0; round < 5; round += 1) {
      const client = upload(edgePort, headers, 20)
      await waitFor('the end', () => client.state() !== 'open')
      assert.match(client.received(), /^HTTP\/1\.1 502 [^]*"code":502\}$/)
      assert.deepEqual([client.state(), client.sent()], ['ended', true])
    }
  })

  for (const length of [{ 'Content-Length': 9 }, {}]) {
    const way = 'Content-Length' in length ? 'of known length' : 'in chunks'
    test(`a client that uploads by Connection: ${connection} gets an early response ${way}`, async (t) => {
      const { edgePort, serve } = await setup(t)
      const where = await serve('abc', (req, res) => {
        res.writeHead(413, { ...length, Connection: 'keep-alive' })
        res.end('too large')
        req.resume()
      })
      for (let round = 0; round < 5; round += 1) {
        const client = upload(edgePort, { ...where, Connection: connection }, 20)
        await waitFor('the end', () => client.state() !== 'open')
        assert.match(client.received(), /^HTTP\/1\.1 413 [^]*too large(\r\n0\r\n\r\n)?$/)
        assert.deepEqual([client.state(), client.sent()], ['ended', true])
      }
    })
  }
}
