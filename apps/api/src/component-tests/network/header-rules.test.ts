import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Header rules: the rules that the node gets and the settings that the API returns. */

let api: ApiUnderTest
beforeEach(async () => {
  api = await startApiUnderTest()
})
afterEach(() => api[Symbol.asyncDispose]())

const secret = 'Bearer Hush-Hush'

function rulesOnNode(id: string) {
  const rules = api.node.running.get(id)?.network?.headerRules ?? []
  return rules.map(({ pattern, headers }) => ({ pattern, headers: { ...headers } }))
}

async function shown(id: string) {
  const { text, json } = await api.call('GET', `/sandboxes/${id}`)
  assert.ok(!text.includes(secret))
  return Object(json).network?.rules
}

const put = (id: string, body: object) => api.call('PUT', `/sandboxes/${id}/network`, { body })

const setting = (headers: object) => [{ transform: { headers } }]

test('rules go to the node in one writing, and are shown without values', async () => {
  const valid = {
    'API.Example.com': setting({ Authorization: secret, 'X-Other': '' }),
    '*.example.org.': setting({ 'x-key': secret }),
    '*.net': setting({ 'x-key': secret }),
    'nothing.example': [],
    'empty.example': [{}],
    'none.example': setting({}),
  }
  const id = await api.create({ network: { rules: valid } })
  assert.deepEqual(rulesOnNode(id), [
    { pattern: 'api.example.com', headers: { Authorization: secret, 'X-Other': '' } },
    { pattern: '*.example.org', headers: { 'x-key': secret } },
    { pattern: '*.net', headers: { 'x-key': secret } },
  ])
  assert.deepEqual(await shown(id), {
    ...valid,
    'API.Example.com': setting({ Authorization: '***', 'X-Other': '***' }),
    '*.example.org.': setting({ 'x-key': '***' }),
    '*.net': setting({ 'x-key': '***' }),
  })
})

test('an update replaces all of them, and one without clears them', async () => {
  const id = await api.create({ network: { rules: { 'a.b': setting({ a: secret }) } } })
  assert.equal((await put(id, { rules: { 'c.d': setting({ b: secret }) } })).status, 204)
  assert.deepEqual(rulesOnNode(id), [{ pattern: 'c.d', headers: { b: secret } }])
  assert.deepEqual(await shown(id), { 'c.d': setting({ b: '***' }) })
  assert.equal((await put(id, {})).status, 204)
  assert.deepEqual([rulesOnNode(id), await shown(id)], [[], undefined])
})

test('header rules survive a restart and a resume, and a copy has the rules of its source', async () => {
  const id = await api.create({ network: { rules: { 'a.b': setting({ a: secret }) } } })
  const expected = [{ pattern: 'a.b', headers: { a: secret } }]
  await api.restart()
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  assert.equal((await api.call('POST', `/v2/sandboxes/${id}/connect`)).status, 201)
  assert.deepEqual(rulesOnNode(id), expected)
  const { json } = await api.call('POST', `/sandboxes/${id}/fork`)
  const [copy] = Array.isArray(json) ? json : []
  assert.deepEqual(rulesOnNode(Object(copy).sandbox?.sandboxID), expected)
})

test('no list of sandboxes has a value', async () => {
  await api.create({ network: { rules: { 'a.b': setting({ a: secret }) } } })
  for (const path of ['/sandboxes', '/v2/sandboxes']) {
    assert.ok(!(await api.call('GET', path)).text.includes(secret))
  }
})
