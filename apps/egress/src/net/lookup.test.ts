import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openNameServer } from '../testing/name-server.ts'
import { createLookup } from './lookup.ts'

test('each question is asked from a port of its own', async (t) => {
  const server = await openNameServer(t, ['9.9.9.9'], 50)
  const lookup = createLookup([server.address])
  const names = Array.from({ length: 20 }, (_, at) => `${at}.example.com`)
  await Promise.all(names.map((name) => lookup(name)))
  assert.equal(server.ports.length, 20)
  assert.ok(new Set(server.ports).size > 15, `${new Set(server.ports).size} ports`)
})

test('a question that is under way is not asked again', async (t) => {
  const server = await openNameServer(t, ['9.9.9.9'], 50)
  const lookup = createLookup([server.address])
  const name = 'api.example.com'
  const found = await Promise.all([lookup(name), lookup(name), lookup(name)])
  assert.deepEqual(found, [['9.9.9.9'], ['9.9.9.9'], ['9.9.9.9']])
  assert.equal(server.ports.length, 1)
  await lookup(name)
  assert.equal(server.ports.length, 2)
})

test('a question that nobody answers is asked again later', async (t) => {
  const server = await openNameServer(t, [])
  const lookup = createLookup([server.address])
  for (const count of [1, 2]) {
    await assert.rejects(lookup('api.example.com'), { code: 'ENODATA' })
    assert.equal(server.ports.length, count)
  }
})
