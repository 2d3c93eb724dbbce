import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFileUses } from './file-uses.ts'

function setup() {
  const clock = { nowMs: 0 }
  return { clock, uses: createFileUses(() => clock.nowMs) }
}

test('files in use are not evicted, and a use that ended counts for some time', async () => {
  const { clock, uses } = setup()
  const [first, second] = [await uses.begin('a'), await uses.begin('a')]
  first[Symbol.dispose]()
  first[Symbol.dispose]()
  assert.equal(await uses.evict('a', async () => assert.fail('in use')), undefined)
  second[Symbol.dispose]()
  clock.nowMs = 10
  assert.deepEqual(
    [uses.isUsed('a', 11), uses.isUsed('a', 10), uses.isUsed('b', 11)],
    [true, false, false],
  )
  assert.equal(await uses.evict('a', async () => 'evicted'), 'evicted')
})

test('a use that begins during an eviction waits for its end, also when it fails', async () => {
  const { uses } = setup()
  const removal = Promise.withResolvers<void>()
  const seen: string[] = []
  const evicting = uses.evict('a', async () => {
    await removal.promise
    seen.push('evicted')
    throw new Error('disk failure')
  })
  const begun = uses.begin('a').then(() => seen.push('used'))
  assert.equal(await uses.evict('a', async () => assert.fail('twice')), undefined)
  removal.resolve()
  await assert.rejects(evicting, /disk failure/)
  await begun
  assert.deepEqual(seen, ['evicted', 'used'])
})
