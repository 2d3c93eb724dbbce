import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

/** Allowed domains and egress proxies: the rules that the node gets and the settings that the API returns. */

let api: ApiUnderTest
beforeEach(async () => {
  api = await startApiUnderTest()
})
afterEach(() => api[Symbol.asyncDispose]())

const everything = '0.0.0.0/0'
const proxy = { address: 'proxy.example.com:1080', username: 'me', password: 'secret' }
const shownProxy = { address: 'proxy.example.com:1080', username: 'me' }
const none = { allowOut: [], denyOut: [], allowNames: [], proxy: undefined }

/** Egress rules of a running sandbox on the node, without protobuf fields. */
function rulesOnNode(id: string) {
  const { allowOut, denyOut, allowNames, proxy: via } = api.node.running.get(id)?.network ?? {}
  const { address, username, password } = via ?? {}
  return { allowOut, denyOut, allowNames, proxy: via && { address, username, password } }
}

async function shown(id: string) {
  const { text, json } = await api.call('GET', `/sandboxes/${id}`)
  assert.ok(!text.includes(proxy.password))
  return Object(json).network
}

const put = (id: string, body: object) => api.call('PUT', `/sandboxes/${id}/network`, { body })

test('domains go to the node in one writing, and are shown as they were given', async () => {
  const network = {
    allowOut: ['1.1.1.1', 'Example.COM', '*.Example.org.', 'example.com.', '_a.b-c.d', 'fd00::1'],
    denyOut: [everything],
  }
  const id = await api.create({ network })
  assert.deepEqual(await shown(id), network)
  assert.deepEqual(rulesOnNode(id), {
    ...none,
    allowOut: ['1.1.1.1'],
    denyOut: [everything],
    allowNames: ['example.com', '*.example.org', '_a.b-c.d'],
  })
})

test('without internet access domains need no other denial', async () => {
  const allowOut = ['example.com']
  const id = await api.create({ allow_internet_access: false, network: { allowOut } })
  const rules = { ...none, denyOut: [everything], allowNames: allowOut }
  assert.deepEqual(rulesOnNode(id), rules)
  assert.equal((await put(id, {})).status, 204)
  assert.deepEqual(rulesOnNode(id), none)
  assert.equal((await put(id, { allow_internet_access: false, allowOut })).status, 204)
  assert.deepEqual(rulesOnNode(id), rules)
})

test('an update that opens the internet again needs a denial of its own', async () => {
  const network = { allowOut: ['example.com'] }
  const id = await api.create({ allow_internet_access: false, network })
  for (const access of [{}, { allow_internet_access: true }]) {
    assert.equal((await put(id, { ...network, ...access })).status, 400)
  }
  assert.deepEqual(rulesOnNode(id).denyOut, [everything])
})

for (const [given, sent] of [
  [proxy, proxy],
  [{ address: '8.8.8.8:65535' }, { address: '8.8.8.8:65535' }],
  [{ address: 'Proxy.Example.:1' }, { address: 'proxy.example:1' }],
  [{ address: 'a.b:1', username: 'me' }, undefined],
  [{ address: 'a.b:1', username: 'ü'.repeat(127), password: 'x'.repeat(255) }, undefined],
  [{ address: 'a.b:1', username: 'me', password: '' }, undefined],
] as const) {
  test(`the proxy ${JSON.stringify(given).slice(0, 60)} goes to the node`, async () => {
    const { password: _secret, ...view } = { password: undefined, ...given }
    const id = await api.create({ network: { egressProxy: given } })
    const expected = { username: undefined, password: undefined, ...(sent ?? given) }
    assert.deepEqual(rulesOnNode(id), { ...none, proxy: expected })
    assert.deepEqual(await shown(id), { egressProxy: view })
  })
}

test('no view of a sandbox has the password', async () => {
  const body = { templateID: 'base', network: { egressProxy: proxy } }
  const created = await api.call('POST', '/v2/sandboxes', { body })
  const path = `/v2/sandboxes/${Object(created.json).sandboxID}`
  const replies = [
    created,
    await api.call('GET', '/sandboxes'),
    await api.call('GET', '/v2/sandboxes'),
    await api.call('POST', `${path}/connect`),
  ]
  for (const { text } of replies) assert.doesNotMatch(text, /secret/)
})

for (const body of [{}, { egressProxy: null }]) {
  test(`an update with ${JSON.stringify(body)} clears domains and proxy`, async () => {
    const network = { allowOut: ['a.b'], denyOut: [everything], egressProxy: proxy }
    const id = await api.create({ network })
    assert.equal((await put(id, body)).status, 204)
    assert.deepEqual([rulesOnNode(id), await shown(id)], [none, {}])
  })
}

test('an update brings them, and they come back with a restart and a resume', async () => {
  const id = await api.create({ network: { maskRequestHost: 'a.b' } })
  const egress = { allowOut: ['a.b', '*.c.d'], denyOut: [everything] }
  assert.equal((await put(id, { ...egress, egressProxy: proxy })).status, 204)
  const rules = { allowOut: [], denyOut: [everything], allowNames: egress.allowOut, proxy }
  assert.deepEqual(rulesOnNode(id), rules)
  await api.restart()
  const view = { maskRequestHost: 'a.b', ...egress, egressProxy: shownProxy }
  assert.deepEqual(await shown(id), view)
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  assert.deepEqual(await shown(id), view)
  assert.equal((await api.call('POST', `/v2/sandboxes/${id}/connect`)).status, 201)
  assert.deepEqual([rulesOnNode(id), await shown(id)], [rules, view])
})

test('a copy has those of its source', async () => {
  const network = { allowOut: ['a.b'], denyOut: [everything], egressProxy: proxy }
  const id = await api.create({ network })
  const reply = await api.call('POST', `/sandboxes/${id}/fork`)
  const [copy] = Object(reply.json)
  assert.doesNotMatch(reply.text, /secret/)
  assert.deepEqual(rulesOnNode(copy.sandbox.sandboxID), rulesOnNode(id))
  assert.deepEqual(await shown(copy.sandbox.sandboxID), { ...network, egressProxy: shownProxy })
})
