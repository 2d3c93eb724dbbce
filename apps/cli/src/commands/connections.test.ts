import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { setupCloud } from '../sim/setup.ts'

const seen = { port: 443, protocol: 'tcp', count: 1, lastAt: '2026-01-01T00:00:00.000Z' }
const allowed = {
  ...{ ...seen, name: 'shop.example', address: '11.1.1.1', verdict: 'allowed' },
  ...{ sentBytes: 5, receivedBytes: 9 },
}
const denied = { ...seen, name: 'evil.example', port: 53, protocol: 'dns', verdict: 'denied' }

test('connections shows names, addresses, verdicts and bytes', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  assert.equal((await run(['sandbox', 'connections', id])).stderr, 'No connections yet.\n')
  cloud.sandboxes.get(id)?.connections.push([allowed, denied])
  const { stdout } = await run(['sandbox', 'connections', id])
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/)),
    [
      ['LAST', 'VERDICT', 'PROTOCOL', 'DESTINATION', 'COUNT', 'BYTES'],
      [seen.lastAt, 'allowed', 'tcp', 'shop.example:443 (11.1.1.1)', '1', '5 out, 9 in'],
      [seen.lastAt, 'denied', 'dns', 'evil.example', '1', '-'],
    ],
  )
  const json = JSON.parse((await run(['sandbox', 'connections', id, '--denied', '--json'])).stdout)
  assert.deepEqual(json, [denied])
})

test('connections --follow prints each change once, and ends with the sandbox', async (t) => {
  const { cloud, run } = await setupCloud(t)
  const id = cloud.addSandbox()
  const replies = cloud.sandboxes.get(id)?.connections
  replies?.push([denied], [denied], [allowed, { ...denied, count: 2 }])
  const following = run(['sandbox', 'connections', id, '--follow'])
  await waitFor('the last reply', () => {
    const requests = cloud.requests.filter((line) => line.endsWith('/connections'))
    return requests.length >= 4
  })
  cloud.sandboxes.delete(id)
  const { code, stdout } = await following
  assert.equal(code, 0)
  const words = stdout
    .trimEnd()
    .split('\n')
    .map((line) =>
      line
        .split(/\s{2,}/)
        .slice(1, 5)
        .join(' '),
    )
  assert.deepEqual(words, [
    'denied dns evil.example 1',
    'denied dns evil.example 2',
    'allowed tcp shop.example:443 (11.1.1.1) 1',
  ])
})
