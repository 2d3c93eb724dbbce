import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePlace } from './place.ts'

test('a path is local, in a sandbox, or a standard stream', () => {
  assert.deepEqual(parsePlace('-'), { kind: 'stdio' })
  assert.deepEqual(parsePlace('./a:b'), { kind: 'local', path: './a:b' })
  assert.deepEqual(parsePlace('/a'), { kind: 'local', path: '/a' })
  assert.deepEqual(parsePlace('iabc:/x:y'), { kind: 'sandbox', sandboxId: 'iabc', path: '/x:y' })
  assert.throws(() => parsePlace('iabc:'), /has no path/)
  assert.throws(() => parsePlace(''), /empty/)
})
