import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'

/** Team secrets and their use in header rules of sandboxes. */

let api: ApiUnderTest
beforeEach(async () => {
  api = await startApiUnderTest()
})
afterEach(() => api[Symbol.asyncDispose]())

const value = 'Hush-Hush'

async function call(method: string, path: string, body?: object, as?: { apiKey: string }) {
  const { status, text, json, headers } = await api.call(method, path, {
    ...(body && { body }),
    ...(as && { headers: { 'x-api-key': as.apiKey } }),
  })
  assert.ok(!text.includes(value), text)
  return { status, headers, json: Object(json) }
}
const keep = (name: string, more: object = {}) => call('POST', '/secrets', { name, value, ...more })

function rulesOnNode(id: string) {
  const rules = api.node.running.get(id)?.network?.headerRules ?? []
  return Object.fromEntries(rules.map(({ pattern, headers }) => [pattern, { ...headers }]))
}

const rules = {
  'a.b': [{ transform: { headers: { Authorization: 'Bearer ${e2b.secrets.Key}', other: 'x' } } }],
}

test('a secret is kept and shown without its value, by its id and by its name', async () => {
  const { status, json, headers } = await keep('My_Key-1', { metadata: { owner: 'me' } })
  assert.equal(status, 201)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.match(json.secretID, /^sec_[a-z0-9]{26}$/)
  const { secretID, createdAt, updatedAt, ...rest } = json
  assert.deepEqual(rest, { name: 'my_key-1', currentVersion: 1, metadata: { owner: 'me' } })
  assert.equal(createdAt, updatedAt)
  for (const path of [secretID, secretID.toUpperCase(), 'my_key-1', 'MY_KEY-1']) {
    assert.deepEqual((await call('GET', `/secrets/${path}`)).json, json)
  }
  assert.deepEqual((await call('GET', '/secrets')).json, [json])
})

test('a name is taken once, in whatever case, and by each team', async () => {
  assert.equal((await keep('a')).status, 201)
  assert.equal((await keep('A')).status, 409)
  const other = api.theirs
  assert.equal((await call('POST', '/secrets', { name: 'a', value }, other)).status, 201)
})

test('another value is another version, and metadata stays unless it is given', async () => {
  await keep('a', { metadata: { b: 'c' } })
  const second = await call('POST', '/secrets/a', { value })
  assert.deepEqual([second.status, second.json.currentVersion], [200, 2])
  assert.deepEqual(second.json.metadata, { b: 'c' })
  const third = await call('POST', `/secrets/${second.json.secretID}`, { value, metadata: {} })
  assert.deepEqual([third.json.currentVersion, third.json.metadata], [3, {}])
})

test('a deleted, unknown or foreign secret is not found', async () => {
  const { secretID } = (await keep('a')).json
  const other = api.theirs
  for (const path of ['/secrets/a', `/secrets/${secretID}`]) {
    assert.equal((await call('GET', path, undefined, other)).status, 404)
    assert.equal((await call('POST', path, { value }, other)).status, 404)
    assert.equal((await call('DELETE', path, undefined, other)).status, 404)
  }
  assert.deepEqual((await call('GET', '/secrets', undefined, other)).json, [])
  assert.equal((await call('DELETE', '/secrets/A')).status, 204)
  assert.equal((await call('DELETE', '/secrets/a')).status, 404)
  assert.equal((await call('GET', `/secrets/${secretID}`)).status, 404)
})

test('the list comes in pages, each secret once', async () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  for (const name of names) await keep(name)
  const seen: string[] = []
  for (let token = ''; ;) {
    const { json, headers } = await call('GET', `/secrets?limit=2${token}`)
    seen.push(...json.map(({ name }: { name: string }) => name))
    const next = headers.get('x-next-token')
    if (next === null || next === undefined) break
    token = `&nextToken=${next}`
  }
  assert.deepEqual(seen.toSorted(), names)
})

for (const [what, body] of Object.entries({
  'no name': { value },
  'no value': { name: 'a' },
  'an empty value': { name: 'a', value: '' },
  'a line end in its value': { name: 'a', value: `${value}\n` },
  'a value that is too long': { name: 'a', value: value.repeat(1000) },
  'a name with a blank': { name: 'a b', value },
  'a name like an id': { name: 'Sec_a', value },
  'a long name': { name: 'a'.repeat(129), value },
  'too much metadata': {
    name: 'a',
    value,
    metadata: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`${index}`, 'x'])),
  },
  'metadata of another kind': { name: 'a', value, metadata: { a: 5 } },
})) {
  test(`${what} is refused, and nothing is stored`, async () => {
    assert.equal((await call('POST', '/secrets', body)).status, 400)
    assert.deepEqual((await call('GET', '/secrets')).json, [])
  })
}

test('a header that names a secret has its value on the node, and nowhere else', async () => {
  await keep('key')
  const id = await api.create({ network: { rules } })
  assert.deepEqual(rulesOnNode(id), { 'a.b': { Authorization: `Bearer ${value}`, other: 'x' } })
  await call('GET', `/sandboxes/${id}`)
  await call('GET', '/v2/sandboxes')
})

test('a missing secret is refused at a create and an update', async () => {
  const body = { templateID: 'base', network: { rules } }
  const created = await call('POST', '/v2/sandboxes', body)
  assert.equal(created.status, 400)
  assert.match(created.json.message, /network\.rules: there is no secret "key"/)
  const id = await api.create({})
  assert.equal((await call('PUT', `/sandboxes/${id}/network`, { rules })).status, 400)
  assert.deepEqual(rulesOnNode(id), {})
  const other = api.theirs
  await call('POST', '/secrets', { name: 'key', value }, other)
  assert.equal((await call('PUT', `/sandboxes/${id}/network`, { rules })).status, 400)
})

test('a change is in force in running sandboxes when it is answered', async () => {
  await keep('key')
  await keep('unused')
  const id = await api.create({ network: { rules } })
  const others = [await api.create({}), await api.create({ network: { denyOut: ['1.1.1.1'] } })]
  const next = 'another value'
  assert.equal((await call('POST', '/secrets/key', { value: next })).status, 200)
  assert.deepEqual(rulesOnNode(id), { 'a.b': { Authorization: `Bearer ${next}`, other: 'x' } })
  assert.equal((await call('DELETE', '/secrets/key')).status, 204)
  assert.deepEqual(rulesOnNode(id), { 'a.b': { other: 'x' } })
  await keep('KEY')
  assert.deepEqual(rulesOnNode(id), { 'a.b': { Authorization: `Bearer ${value}`, other: 'x' } })
  assert.deepEqual(others.map(rulesOnNode), [{}, {}])
})

test('a paused sandbox comes back with the newest value', async () => {
  await keep('key')
  const id = await api.create({ network: { rules } })
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  await call('POST', '/secrets/key', { value: 'newer' })
  assert.equal((await api.call('POST', `/v2/sandboxes/${id}/connect`)).status, 201)
  assert.equal(rulesOnNode(id)['a.b']?.Authorization, 'Bearer newer')
})

test('a node that does not answer gets the secret later', async () => {
  await keep('key')
  const id = await api.create({ network: { rules } })
  api.node.fail('network', Code.Unavailable)
  assert.equal((await call('POST', '/secrets/key', { value: 'newer' })).status, 200)
  api.node.fail('network', undefined)
  await waitFor('the new value', () => rulesOnNode(id)['a.b']?.Authorization === 'Bearer newer')
})
