import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Slot } from '../domain/network/slot.ts'
import { createSlotRules } from './slot-rules.ts'

const slot: Slot = {
  number: 7,
  link: 'atoll-test7',
  hostAddress: '10.213.0.29',
  sandboxAddress: '10.213.0.30',
  namespace: 'atoll-test-7',
}
const closed = { allowOut: [], denyOut: ['0.0.0.0/0'] }

function createTestRules() {
  return createSlotRules('inet test', { setAll: async () => {}, set: async () => {} })
}

test('lifted rules are in force as no rules and as empty ones', () => {
  const rules = createTestRules()
  rules.script(slot, closed)
  rules.confirm(slot, closed)
  assert.equal(rules.areInForce(slot, { allowOut: [], denyOut: [] }), false)

  assert.notDeepEqual(rules.script(slot, undefined), [])
  assert.equal(rules.areInForce(slot, undefined), false)
  rules.confirm(slot, undefined)
  assert.equal(rules.areInForce(slot, undefined), true)
  assert.equal(rules.areInForce(slot, { allowOut: [], denyOut: [] }), true)
  assert.equal(rules.areInForce(slot, closed), false)
})

test('rules whose script did not run are not in force', () => {
  const rules = createTestRules()
  rules.script(slot, closed)
  assert.equal(rules.areInForce(slot, closed), false)
  assert.equal(rules.areInForce(slot, undefined), false)
})
