import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planConnections } from './connection-plan.ts'
import { parseDescriptorLimit, readDescriptorLimit } from './descriptor-limit.ts'

for (const [descriptors, connections] of [
  [512, 128],
  [1_024, 384],
  [20_000, 8_750],
  [1_048_576, 16_384],
] as const) {
  test(`${descriptors} descriptors carry ${connections} connections, and leave an eighth for the server`, () => {
    const plan = planConnections(descriptors, {})
    assert.deepEqual(plan, {
      maxConnections: connections,
      maxPerClient: Math.ceil(connections / 8),
      maxRequests: connections,
      maxRequestsPerSandbox: Math.ceil(connections / 4),
    })
    assert.ok(plan.maxConnections + plan.maxRequests <= (descriptors * 7) / 8)
  })
}

test('with TLS there are fewer connections, since each takes more memory', () => {
  const maxOf = (descriptors: number) =>
    planConnections(descriptors, { isTls: true }).maxConnections
  assert.deepEqual([maxOf(1_024), maxOf(1_048_576)], [384, 5_000])
})

test('settings go before the usual numbers', () => {
  const settings = { maxConnections: 100, maxPerClient: 7, maxRequestsPerSandbox: 9 }
  assert.deepEqual(planConnections(20_000, settings), { ...settings, maxRequests: 100 })
})

test('more connections than there are descriptors for are refused, with the limit that would do', () => {
  const settings = { maxConnections: 10_000 }
  let needed = 0
  assert.throws(
    () => planConnections(20_000, settings),
    ({ reason, message }: { reason: string; message: string }) => {
      needed = Number(/need (\d+) open files/.exec(message)?.[1])
      return reason === 'too_few_descriptors' && message.includes('only 20000')
    },
  )
  assert.equal(planConnections(needed, settings).maxConnections, 10_000)
  assert.throws(() => planConnections(300, {}), /64 connections need 384 open files/)
  assert.equal(planConnections(384, {}).maxConnections, 64)
})

test('the limit of this process is read, and may be none', async () => {
  assert.ok((await readDescriptorLimit()) >= 64)
  assert.equal(
    parseDescriptorLimit('Max open files            unlimited   unlimited  files'),
    1_048_576,
  )
})
