import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { startApiUnderTest } from '../../sim/api.ts'
import type { ApiUnderTest } from '../../sim/api.ts'

let api: ApiUnderTest
beforeEach(async () => {
  api = await startApiUnderTest()
})
afterEach(() => api[Symbol.asyncDispose]())

const everything = '0.0.0.0/0'

/** Egress rules of a running sandbox on the node. */
function rules(id: string) {
  const { allowOut, denyOut } = api.node.running.get(id)?.network ?? {}
  return { allowOut, denyOut }
}

function ingress(id: string) {
  const { trafficAccessToken, maskRequestHost, httpsPorts } =
    api.node.running.get(id)?.ingress ?? {}
  return { trafficAccessToken, maskRequestHost, httpsPorts }
}

async function shown(id: string) {
  const { allowInternetAccess, network } = Object((await api.call('GET', `/sandboxes/${id}`)).json)
  return { allowInternetAccess, network }
}

const put = (id: string, body: object) => api.call('PUT', `/sandboxes/${id}/network`, { body })

test('a sandbox that asks for nothing may go everywhere and shows no network', async () => {
  const id = await api.create()
  assert.deepEqual(rules(id), { allowOut: [], denyOut: [] })
  assert.deepEqual(await shown(id), { allowInternetAccess: undefined, network: undefined })
})

test('egress settings are enforced, and shown as they were sent', async () => {
  const network = {
    allowOut: ['1.1.1.1', '8.8.8.0/24', 'fd00::/8', everything],
    denyOut: [everything, '1.1.1.1', '2001:db8::1'],
  }
  const id = await api.create({ network })
  assert.deepEqual(await shown(id), { allowInternetAccess: undefined, network })
  assert.deepEqual(rules(id), {
    allowOut: ['1.1.1.1', '8.8.8.0/24', everything],
    denyOut: [everything, '1.1.1.1'],
  })
})

test('without internet access all is denied but what is allowed', async () => {
  const network = { allowOut: ['1.1.1.1'], denyOut: ['9.9.9.9'] }
  const id = await api.create({ allow_internet_access: false, network })
  assert.deepEqual(rules(id), { allowOut: ['1.1.1.1'], denyOut: [everything] })
  assert.deepEqual(await shown(id), { allowInternetAccess: false, network })
  const open = await api.create({ allow_internet_access: true, network })
  assert.deepEqual(rules(open), network)
})

test('a private sandbox has a traffic token of its own, in every view that starts it', async () => {
  const body = { templateID: 'base', network: { allowPublicTraffic: false } }
  const created = Object((await api.call('POST', '/v2/sandboxes', { body })).json)
  const id: string = created.sandboxID
  assert.match(created.trafficAccessToken, /^[0-9a-f]{64}$/)
  assert.notEqual(created.trafficAccessToken, created.envdAccessToken)
  assert.equal(ingress(id).trafficAccessToken, created.trafficAccessToken)
  const connected = Object((await api.call('POST', `/v2/sandboxes/${id}/connect`)).json)
  assert.equal(connected.trafficAccessToken, created.trafficAccessToken)
  const detail = Object((await api.call('GET', `/sandboxes/${id}`)).json)
  assert.deepEqual([detail.trafficAccessToken, detail.network], [undefined, body.network])
  const again = Object((await api.call('POST', '/v2/sandboxes', { body })).json)
  assert.notEqual(again.trafficAccessToken, created.trafficAccessToken)
})

test('a public sandbox has no traffic token', async () => {
  for (const network of [undefined, {}, { allowPublicTraffic: true }]) {
    const body = { templateID: 'base', network }
    const created = Object((await api.call('POST', '/v2/sandboxes', { body })).json)
    assert.equal(created.trafficAccessToken, undefined)
    assert.equal(ingress(created.sandboxID).trafficAccessToken, undefined)
  }
})

for (const maskRequestHost of [
  'localhost:${PORT}',
  'app.example.com',
  'localhost:3000',
  '10.0.0.1',
]) {
  test(`the mask ${maskRequestHost} and ports of TLS reach the node and are shown`, async () => {
    const network = { maskRequestHost, httpsPorts: [443, 8443] }
    const id = await api.create({ network })
    assert.deepEqual(ingress(id), { trafficAccessToken: undefined, ...network })
    assert.deepEqual((await shown(id)).network, network)
  })
}

test('an update replaces what may leave and clears what it leaves out, but not how to get in', async () => {
  const ways = { allowPublicTraffic: false, maskRequestHost: 'a.b', httpsPorts: [443] }
  const id = await api.create({
    allow_internet_access: false,
    network: { ...ways, allowOut: ['1.1.1.1'], denyOut: ['9.9.9.9'] },
  })
  const before = ingress(id)
  const reply = await put(id, { denyOut: ['8.8.8.8'], allowPublicTraffic: true })
  assert.deepEqual([reply.status, reply.text], [204, ''])
  assert.deepEqual(rules(id), { allowOut: [], denyOut: ['8.8.8.8'] })
  assert.deepEqual(await shown(id), {
    allowInternetAccess: undefined,
    network: { ...ways, denyOut: ['8.8.8.8'] },
  })
  assert.deepEqual(ingress(id), before)
  assert.equal((await put(id, { allow_internet_access: false, allowOut: ['1.1.1.1'] })).status, 204)
  assert.deepEqual(rules(id), { allowOut: ['1.1.1.1'], denyOut: [everything] })
  assert.equal((await put(id, {})).status, 204)
  assert.deepEqual(rules(id), { allowOut: [], denyOut: [] })
  assert.equal((await put(id, { egressProxy: null, rules: {} })).status, 204)
})

test('rules and ways in come back with a resume, the updated ones', async () => {
  const id = await api.create({
    network: { allowPublicTraffic: false, httpsPorts: [443], denyOut: ['9.9.9.9'] },
  })
  const before = ingress(id)
  await put(id, { denyOut: [everything], allowOut: ['1.1.1.1'] })
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  assert.equal((await api.call('POST', `/v2/sandboxes/${id}/connect`)).status, 201)
  assert.deepEqual(rules(id), { allowOut: ['1.1.1.1'], denyOut: [everything] })
  assert.deepEqual(ingress(id), before)
})

test('the network of a sandbox that does not run cannot be updated', async () => {
  const id = await api.create({ network: { denyOut: ['9.9.9.9'] } })
  assert.equal((await put('inosuch', {})).status, 404)
  await api.call('POST', `/sandboxes/${id}/pause`)
  assert.equal((await put(id, {})).status, 404)
  assert.deepEqual((await shown(id)).network, { denyOut: ['9.9.9.9'] })
  await api.call('DELETE', `/sandboxes/${id}`)
  assert.equal((await put(id, {})).status, 404)
})

test('while it is being paused an update is a conflict', async () => {
  const id = await api.create()
  const release = api.node.hold('pause')
  const pause = api.call('POST', `/sandboxes/${id}/pause`)
  await waitFor('the pause', () => api.node.begun('pause') === 1)
  assert.equal((await put(id, { denyOut: ['9.9.9.9'] })).status, 409)
  release()
  assert.equal((await pause).status, 204)
})

test('of updates at one time the last one written is the last one in force', async () => {
  const id = await api.create()
  const entries = Array.from({ length: 20 }, (_, at) => `9.9.9.${at + 1}`)
  await Promise.all(entries.map((entry) => put(id, { denyOut: [entry] })))
  assert.deepEqual(rules(id).denyOut, (await shown(id)).network.denyOut)
})

test('the network of a sandbox survives a restart of the server', async () => {
  const network = { denyOut: [everything], allowPublicTraffic: false }
  const id = await api.create({ network })
  await api.restart()
  assert.deepEqual((await shown(id)).network, network)
})
