import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownerOf } from './lease.ts'

const keys = Array.from({ length: 300 }, (_, index) => `node-${index}`)
const holders = ['a', 'b', 'c'].map((processId) => ({ processId }))

test('keys are shared out about evenly, whatever the order of the leases', () => {
  for (const { processId } of holders) {
    const own = keys.filter((key) => ownerOf(key, holders) === processId)
    assert.ok(own.length > 60 && own.length < 140, `${processId} has ${own.length}`)
  }
  for (const key of keys) assert.equal(ownerOf(key, holders.toReversed()), ownerOf(key, holders))
})

test('when a process ends, only its keys get another owner', () => {
  const left = holders.filter(({ processId }) => processId !== 'b')
  for (const key of keys) {
    const before = ownerOf(key, holders)
    if (before !== 'b') assert.equal(ownerOf(key, left), before)
  }
})

test('a node belongs to a process that reaches it, if there is one', () => {
  const unreached = new Set(keys)
  const onlyC = holders.map((holder) =>
    holder.processId === 'c' ? holder : { ...holder, unreached },
  )
  for (const key of keys) assert.equal(ownerOf(key, onlyC), 'c')
  const none = holders.map((holder) => ({ ...holder, unreached }))
  for (const key of keys) assert.equal(ownerOf(key, none), ownerOf(key, holders))
})
