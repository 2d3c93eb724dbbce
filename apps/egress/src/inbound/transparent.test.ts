import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { makeTransparent } from './transparent.ts'

test('a listening node:net server has its descriptor in the private field `_handle.fd`', async (t) => {
  const server = createServer()
  t.after(() => server.close())
  assert.throws(() => makeTransparent(server), /IP_TRANSPARENT/)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  makeTransparent(server)
})
