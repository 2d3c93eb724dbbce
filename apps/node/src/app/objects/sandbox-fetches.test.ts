import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSandboxFetches } from './sandbox-fetches.ts'

const request = { sandboxId: 'i1', keptGeneration: 1, keptId: 'k', generation: 2, boot: false }

function setUp() {
  const begun: PromiseWithResolvers<void>[] = []
  let receivedBytes = 0
  const fetches = createSandboxFetches({
    begin() {
      const fetching = Promise.withResolvers<void>()
      begun.push(fetching)
      return fetching.promise
    },
    receivedBytes: () => receivedBytes,
  })
  return { fetches, begun, receive: (bytes: number) => void (receivedBytes += bytes) }
}

test('a caller gets the progress, and comes back to the same fetch', async () => {
  const { fetches, begun, receive } = setUp()
  assert.deepEqual(await fetches.fetch(request, 1), { isUnderway: true, receivedBytes: 0 })
  receive(7)
  assert.deepEqual(await fetches.fetch(request, 1), { isUnderway: true, receivedBytes: 7 })
  assert.equal(begun.length, 1)
  const last = fetches.fetch(request)
  begun[0]?.resolve()
  assert.deepEqual(await last, { isUnderway: false, receivedBytes: 7 })
})

test('a failure between two calls reaches the next caller once, and then a new fetch begins', async () => {
  const { fetches, begun } = setUp()
  await fetches.fetch(request, 1)
  begun[0]?.reject(new Error('no connection'))
  await assert.rejects(fetches.fetch(request, 60_000), /no connection/)
  assert.equal((await fetches.fetch(request, 1)).isUnderway, true)
  assert.equal(begun.length, 2)
})

test('another content or generation is another fetch', async () => {
  const { fetches, begun } = setUp()
  for (const other of [{}, { keptId: 'other' }, { generation: 3 }, { boot: true }]) {
    await fetches.fetch({ ...request, ...other }, 1)
  }
  assert.equal(begun.length, 4)
})
