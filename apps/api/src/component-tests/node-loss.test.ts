/** A lost node: running sandboxes end, paused ones wait, and the node kills the rest when it is back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { silentLogger } from '@atoll/kit/log'
import { waitFor } from '@atoll/kit/wait'
import { Code } from '@connectrpc/connect'
import { startLossDetection } from '../app/fleet/loss.ts'
import { createSilence } from '../domain/nodes/silence.ts'
import { startApiUnderTest } from '../sim/api.ts'

/** Heartbeats as the store would list them: the node of the test is silent, the others are not. */
function silentNodes(nodeId: string, others: readonly string[]) {
  let reading = 0
  return async () => {
    reading += 1
    return [
      { id: nodeId, address: 'host:1', seenAt: 0 },
      ...others.map((id) => ({ id, address: 'host:1', seenAt: reading })),
    ]
  }
}

test('running sandboxes of a lost node end, paused ones stay, and the node kills the rest', async () => {
  await using api = await startApiUnderTest()
  const [running, paused] = [await api.create({}), await api.create({})]
  assert.equal((await api.call('POST', `/sandboxes/${paused}/pause`)).status, 204)
  api.node.failAll(Code.Unavailable)
  const states = () =>
    api.withStores(async ({ sandboxes }) => {
      const records = [await sandboxes.find(running), await sandboxes.find(paused)]
      return records.map((record) => [record?.state, record?.endReason])
    })
  await api.withStores(async ({ sandboxes }) => {
    let nowMs = 0
    const loss = startLossDetection({
      fleet: { listNodes: silentNodes(api.node.nodeId, ['b', 'c']) },
      ...{ sandboxes, silence: createSilence(), clock: systemClock, log: silentLogger },
      recoverResumes: async () => {},
      nowMs: () => (nowMs += 5_000),
    })
    await waitFor('the loss', async () => {
      loss.nudge()
      return (await sandboxes.find(running))?.state === 'ended'
    })
    await loss.close()
  })
  assert.deepEqual(await states(), [
    ['ended', 'node lost'],
    ['paused', undefined],
  ])
  assert.deepEqual([...api.node.running.keys()], [running])

  api.node.failAll(undefined)
  await waitFor('the kill', () => api.node.running.size === 0)
  assert.equal(
    (await api.call('POST', `/sandboxes/${paused}/connect`, { body: { timeout: 60 } })).status,
    201,
  )
})

test('nothing ends when most nodes are silent', async () => {
  await using api = await startApiUnderTest()
  const running = await api.create({})
  let passes = 0
  await api.withStores(async ({ sandboxes }) => {
    const list = silentNodes(api.node.nodeId, [])
    const loss = startLossDetection({
      fleet: { listNodes: list },
      ...{ sandboxes, silence: createSilence(), clock: systemClock, log: silentLogger },
      recoverResumes: async () => {},
      nowMs: () => (passes += 1) * 5_000,
    })
    await waitFor('many passes', () => {
      loss.nudge()
      return passes > 30
    })
    await loss.close()
  })
  assert.equal((await api.call('GET', `/sandboxes/${running}`)).status, 200)
})
