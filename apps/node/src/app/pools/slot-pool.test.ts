import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { parseSubnet } from '../../domain/network/slot.ts'
import { createSlotPool } from './slot-pool.ts'

function setup(
  options: {
    ready?: number
    inUse?: number[]
    subnet?: string
    failing?: () => boolean
    failsToRemove?: () => boolean
  } = {},
) {
  const existing = new Set<number>()
  const errors: unknown[] = []
  const pool = createSlotPool({
    ports: {
      make: async (slot) => {
        if (options.failing?.()) throw new Error('no cable')
        existing.add(slot.number)
      },
      remove: async (slot) => {
        if (options.failsToRemove?.()) throw new Error('killed')
        existing.delete(slot.number)
      },
    },
    subnet: parseSubnet(options.subnet ?? '10.0.0.0/24'),
    linkPrefix: 'atx-',
    ready: options.ready ?? 0,
    inUse: options.inUse ?? [],
    onError: (error) => errors.push(error),
  })
  return { pool, existing, errors }
}

test('slots are prepared in advance, and the pool is refilled when one is taken', async () => {
  const { pool, existing } = setup({ ready: 3 })
  await waitFor('three slots', () => existing.size === 3)
  assert.equal((await pool.take()).number, 0)
  await waitFor('a fourth', () => existing.size === 4)
  await pool.close()
  assert.deepEqual([...existing], [0])
})

test('numbers of adopted sandboxes are not given out', async () => {
  const { pool } = setup({ subnet: '10.0.0.0/28', inUse: [0, 2] })
  const taken = [await pool.take(), await pool.take()].map((slot) => slot.number)
  assert.deepEqual(taken, [3, 1])
  await assert.rejects(pool.take(), { kind: 'exhausted' })
})

test('a slot whose removal was interrupted is removed by the next attempt', async () => {
  let failures = 1
  const { pool, existing } = setup({ failsToRemove: () => failures-- > 0 })
  await pool.giveBack(await pool.take())
  assert.deepEqual([...existing], [])
})

test('a slot number is not reused at once', async () => {
  const { pool } = setup({ subnet: '10.0.0.0/28' })
  const first = await pool.take()
  await pool.giveBack(first)
  assert.equal((await pool.take()).number, 1)
})

test('a slot that cannot be made leaves nothing and takes no number', async () => {
  let failing = true
  const { pool, existing } = setup({ subnet: '10.0.0.0/30', failing: () => failing })
  await assert.rejects(pool.take(), /no cable/)
  failing = false
  assert.equal((await pool.take()).number, 0)
  assert.equal(existing.size, 1)
})
