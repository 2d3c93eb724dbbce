import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code } from '@connectrpc/connect'
import { startApiUnderTest } from '../../sim/api.ts'

test('outgoing connections of a sandbox are listed for its team alone', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 3600 })
  const list = (headers?: Record<string, string>) =>
    api.call('GET', `/sandboxes/${id}/connections`, headers && { headers })
  assert.deepEqual((await list()).json, { connections: [] })
  const seen = { port: 443, protocol: 'tcp', count: 2n, lastMs: 1_767_225_600_000n }
  api.node.connections.set(id, [
    {
      ...{ ...seen, name: 'shop.example', address: '11.1.1.1', verdict: Verdict.ALLOWED },
      ...{ firstMs: 1_767_225_500_000n, sentBytes: 10n, receivedBytes: 20n },
    },
    { ...seen, address: '11.2.2.2', verdict: Verdict.DENIED },
  ])
  const { status, json } = await list()
  assert.equal(status, 200)
  const lastAt = '2026-01-01T00:00:00.000Z'
  assert.deepEqual(json, {
    connections: [
      {
        ...{ name: 'shop.example', address: '11.1.1.1', port: 443, protocol: 'tcp' },
        ...{ verdict: 'allowed', count: 2, firstAt: '2025-12-31T23:58:20.000Z', lastAt },
        ...{ sentBytes: 10, receivedBytes: 20 },
      },
      { address: '11.2.2.2', port: 443, protocol: 'tcp', verdict: 'denied', count: 2, lastAt },
    ],
  })
  assert.equal((await list({ 'x-api-key': api.theirs.apiKey })).status, 404)
  api.node.failAll(Code.Unavailable)
  assert.equal((await list()).status, 503)
  api.node.failAll(undefined)
  await api.call('POST', `/sandboxes/${id}/pause`)
  assert.deepEqual((await list()).json, { connections: [] })
})
