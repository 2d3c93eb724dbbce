/** A request that finds its node agent restarted is repeated, as nothing was done. Other failures are not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../sim/api.ts'
import type { ApiUnderTest } from '../sim/api.ts'

const timeout = { timeout: 3600 }

/** The agent restarts before each request. The reconciler registers it later, unless it happens to come first. */
async function callAfterRestart(api: ApiUnderTest, method: string, path: string, body?: object) {
  api.node.restartAgent()
  const { status } = await api.call(method, path, { ...(body && { body }) })
  return status
}

test('requests for a sandbox succeed right after a restart of the agent of its node', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create(timeout)
  for (const boot of [true, false]) {
    const path = `/sandboxes/${id}`
    assert.equal(await callAfterRestart(api, 'POST', `${path}/pause`, { memory: !boot }), 204)
    assert.equal(await callAfterRestart(api, 'POST', `${path}/connect`, timeout), 201)
    assert.equal(await callAfterRestart(api, 'POST', `${path}/snapshots`, {}), 201)
    const rules = { allowOut: [], denyOut: ['10.0.0.0/8'] }
    assert.equal(await callAfterRestart(api, 'PUT', `${path}/network`, rules), 204)
    assert.equal(await callAfterRestart(api, 'POST', `${path}/fork`, { count: 1 }), 201)
  }
  const { generation, boots } = api.node.running.get(id) ?? assert.fail('it does not run')
  assert.deepEqual([generation, boots], [3, 2])
  assert.equal(await callAfterRestart(api, 'DELETE', `/sandboxes/${id}`), 204)
  assert.ok(api.node.killed.includes(id))
})

test('a resume during which the agent restarts is carried out once', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create(timeout)
  for (const attempt of [1, 2, 3]) {
    const release = api.node.hold('resume')
    assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
    const resumed = api.call('POST', `/sandboxes/${id}/connect`, { body: timeout })
    await api.untilHeld(1)
    // The agent of before has taken the call.
    api.node.restartAgent()
    release()
    assert.equal((await resumed).status, 201)
    assert.equal(api.node.begun('resume'), attempt)
  }
})

test('a call is not repeated when its answer is lost, or when the node does not answer', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create(timeout)
  api.node.fail('pause', Code.Unavailable)
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 503)
  assert.equal(api.node.begun('pause'), 1)
  api.node.fail('pause', Code.Unavailable, 'after')
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 204)
  assert.equal(api.node.begun('pause'), 2)
  api.node.fail('resume', Code.Unavailable)
  const path = `/sandboxes/${id}/connect`
  assert.equal((await api.call('POST', path, { body: timeout })).status, 503)
  assert.equal(api.node.begun('resume'), 1)
})

test('an agent on outdated data is not used, however often it restarts', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create(timeout)
  api.node.restartAgent()
  await api.restart()
  api.node.impersonate('sim', 1)
  assert.equal((await api.call('POST', `/sandboxes/${id}/pause`)).status, 503)
  assert.equal(api.node.begun('pause'), 0)
  assert.ok(api.node.running.has(id))
})
