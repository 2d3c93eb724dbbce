import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { waitFor } from '../wait.ts'
import { readInto } from './read-into.ts'

test('node:net has the private fields kBuffer, kBufferGen, kBufferCb and useUserBuffer of Node.js 24', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  const connection = new Promise<Socket>((resolve) => server.once('connection', resolve))
  const client = connect(address.port, '127.0.0.1')
  t.after(() => client.destroy())
  const accepted = await connection
  t.after(() => accepted.destroy())

  const buffer = Buffer.alloc(64)
  let received = ''
  const isSet = readInto(accepted, {
    buffer,
    callback(length, memory) {
      assert.equal(memory, buffer, 'node:net read into other memory')
      received += buffer.toString('latin1', 0, length)
      return true
    },
  })
  assert.ok(isSet, 'Large request bodies go through the parser of node:http with this Node.js')
  accepted.resume()
  client.write('some bytes')
  await waitFor('the bytes', () => received === 'some bytes')
})
