import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fetchContent } from './fetch-content.ts'

const content = { id: 'i1', generation: 2, keptGeneration: 1, keptId: 'k', boot: false }

/** A node that answers with these amounts, 200 s apart, and then has the sandbox. */
function setUp(amounts: readonly number[]) {
  let calls = 0
  const clock = { now: () => new Date(calls * 200_000) }
  const node = {
    async fetch() {
      const receivedBytes = amounts[calls]
      calls += 1
      return { isUnderway: receivedBytes !== undefined, receivedBytes: receivedBytes ?? 0 }
    },
  }
  return { fetch: () => fetchContent(node, content, clock), calls: () => calls }
}

test('a fetch may take any time as long as bytes arrive', async () => {
  const { fetch, calls } = setUp([0, 10, 20, 20, 30, 30, 40, 50])
  await fetch()
  assert.equal(calls(), 9)
})

test('a fetch that receives nothing for five minutes is given up', async () => {
  const { fetch, calls } = setUp([10, 20, 20, 20, 20, 30])
  await assert.rejects(fetch(), { reason: 'objects_unavailable', message: /nothing.*300 s/ })
  assert.equal(calls(), 4)
})
