import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseNamesById } from './names-by-id.ts'

test('the first line with an ID names it, and malformed lines are skipped', () => {
  const text = 'root:x:0:0::/:\ntoor:x:0:0\n:x:5:\nbad:x:-1:\nword:x:six:\nuser:x:1000:1000\n\nx'
  assert.deepEqual(
    [...parseNamesById(text)],
    [
      [0, 'root'],
      [1000, 'user'],
    ],
  )
})
