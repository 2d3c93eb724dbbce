import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDecisions } from './decisions.ts'
import type { Decision } from './decisions.ts'

const allowed: Decision = {
  name: 'shop.example',
  address: '11.1.1.1',
  port: 443,
  protocol: 'tcp',
  verdict: 'allowed',
}

test('equal decisions are counted, with the last address and all bytes', () => {
  let now = 1000
  const decisions = createDecisions(() => now)
  const addBytes = decisions.record(allowed)
  now = 5000
  decisions.record({ ...allowed, address: '11.2.2.2' })({ sent: 1, received: 2 })
  addBytes({ sent: 10, received: 20 })
  decisions.record({ ...allowed, verdict: 'denied' })
  const [first, second] = decisions.list()
  assert.deepEqual(first, {
    ...allowed,
    ...{ address: '11.2.2.2', count: 2, firstMs: 1000, lastMs: 5000 },
    ...{ sentBytes: 11, receivedBytes: 22 },
  })
  assert.equal(second?.verdict, 'denied')
})

test('a sandbox cannot fill the memory, and strange names are left out', () => {
  const decisions = createDecisions(() => 0)
  const addBytes = decisions.record(allowed)
  for (let port = 0; port < 2000; port += 1) decisions.record({ ...allowed, name: undefined, port })
  assert.equal(decisions.list().length, 500)
  addBytes({ sent: 1, received: 1 })
  decisions.record({ ...allowed, name: 'a\u001B[2J' })
  decisions.record({ ...allowed, name: 'x'.repeat(300) })
  assert.equal(decisions.list().at(-1)?.name, undefined)
})

test('the time of the last denial is known, also when its entry has gone', () => {
  let now = 1000
  const decisions = createDecisions(() => now)
  decisions.record(allowed)
  assert.equal(decisions.lastDeniedMs(), 0)
  now = 2000
  decisions.record({ ...allowed, verdict: 'denied' })
  now = 3000
  for (let port = 0; port < 600; port += 1) decisions.record({ ...allowed, port })
  assert.equal(decisions.lastDeniedMs(), 2000)
})
