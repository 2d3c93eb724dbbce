import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@atoll/kit/clock'
import { diskFull } from '@atoll/kit/disk-full'
import { Fault } from '@atoll/kit/fault'
import { silentLogger } from '@atoll/kit/log'
import { createEnding } from './ending.ts'

/** Node and store share a full disk, which has space for a record only after a deletion. */
function setup(failure: Fault) {
  const done: string[] = []
  const ending = createEnding({
    store: {
      find: async (id) => ({ id, nodeId: 'n1', generation: 1 }),
      async update() {
        if (done.includes('killed')) return void done.push('written')
        throw failure
      },
    },
    fleet: { of: () => ({ kill: async () => void done.push('killed') }) },
    clock: systemClock,
    log: silentLogger,
  })
  return { ending, done }
}

test('on a full disk a sandbox is deleted before its record is written', async () => {
  const { ending, done } = setup(new Fault('unavailable', diskFull, 'full'))
  await ending.kill('i1', 'was killed')
  assert.deepEqual(done, ['killed', 'written'])
})

test('while the store fails for another reason, no sandbox is deleted', async () => {
  const { ending, done } = setup(new Fault('unavailable', 'store_unavailable', 'away'))
  await assert.rejects(ending.kill('i1', 'was killed'), /away/)
  assert.deepEqual(done, [])
})

test('a node that forgets a sandbox which lives elsewhere leaves its record alone', async () => {
  const { ending, done } = setup(new Fault('internal', 'unexpected', 'the record must not change'))
  await ending.finish({ id: 'i1', nodeId: 'n1', generation: 1, isElsewhere: true })
  assert.deepEqual(done, ['killed'])
})
