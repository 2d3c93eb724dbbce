import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headersFor } from './transform.ts'

const domains = ['*.example.com', '*.b.example.com', 'a.b.example.com', 'example.org'].map(
  (pattern) => ({ pattern, headers: { [pattern]: 'x' } }),
)

for (const [name, pattern] of [
  ['a.b.example.com', 'a.b.example.com'],
  ['c.b.example.com', '*.b.example.com'],
  ['d.a.b.example.com', '*.b.example.com'],
  ['b.example.com', '*.example.com'],
  ['c.example.com', '*.example.com'],
  ['example.org', 'example.org'],
  ['example.com', undefined],
  ['www.example.org', undefined],
  ['notexample.com', undefined],
] as const) {
  test(`${name} gets the headers of the rule for ${pattern}`, () => {
    for (const order of [domains, domains.toReversed()]) {
      assert.deepEqual(headersFor(name, order), pattern && { [pattern]: 'x' })
    }
  })
}
