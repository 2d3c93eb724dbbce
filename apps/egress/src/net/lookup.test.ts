import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestDnsServer } from '../testing/dns-server.ts'
import { createLookup } from './lookup.ts'

test('each query uses its own source port', async (t) => {
  const server = await startTestDnsServer(t, ['9.9.9.9'], 50)
  const lookup = createLookup([server.address])
  const names = Array.from({ length: 20 }, (_, at) => `${at}.example.com`)
  await Promise.all(names.map((name) => lookup(name)))
  assert.equal(server.ports.length, 20)
  assert.ok(new Set(server.ports).size > 15, `${new Set(server.ports).size} ports`)
})

test('a query in progress is not repeated', async (t) => {
  const server = await startTestDnsServer(t, ['9.9.9.9'], 50)
  const lookup = createLookup([server.address])
  const name = 'api.example.com'
  const found = await Promise.all([lookup(name), lookup(name), lookup(name)])
  assert.deepEqual(found, [['9.9.9.9'], ['9.9.9.9'], ['9.9.9.9']])
  assert.equal(server.ports.length, 1)
  await lookup(name)
  assert.equal(server.ports.length, 2)
})

test('a failed query is sent again later', async (t) => {
  const server = await startTestDnsServer(t, [])
  const lookup = createLookup([server.address])
  for (const count of [1, 2]) {
    await assert.rejects(lookup('api.example.com'), { code: 'ENODATA' })
    assert.equal(server.ports.length, count)
  }
})
