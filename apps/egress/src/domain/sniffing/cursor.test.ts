import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCursor } from './cursor.ts'

test('fields are read in order up to the end', () => {
  const fields = createCursor(Buffer.from([1, 2, 3, 0, 2, 8, 9, 7]))
  assert.equal(fields.number(3), 0x010203)
  assert.deepEqual(fields.vector(2), Buffer.from([8, 9]))
  assert.equal(fields.isAtEnd(), false)
  assert.deepEqual(fields.bytes(1), Buffer.from([7]))
  assert.equal(fields.isAtEnd(), true)
  assert.equal(fields.position(), 8)
})

test('after a length that exceeds the input, all further reads fail', () => {
  const fields = createCursor(Buffer.from([200, 1, 2]))
  assert.equal(fields.vector(1), undefined)
  assert.equal(fields.number(1), undefined)
  assert.equal(fields.bytes(0), undefined)
  assert.equal(fields.position(), undefined)
  assert.equal(fields.isAtEnd(), false)
})
