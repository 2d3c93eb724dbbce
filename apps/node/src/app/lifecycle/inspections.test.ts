import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withInspections } from './inspections.ts'
import { createKeyedQueue } from './keyed-queue.ts'

const forever = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })

test('another operation on the sandbox ends an inspection, and waits until it has ended', async () => {
  const queue = withInspections(createKeyedQueue())
  const order: string[] = []
  const inspection = queue.inspect(
    'a',
    (signal) => forever(signal).finally(() => order.push('inspection ended')),
    new AbortController().signal,
  )
  const refused = assert.rejects(inspection, { reason: 'inspection_interrupted' })
  await queue.run('b', async () => void order.push('other sandbox'))
  await queue.run('a', async () => void order.push('pause'))
  await refused
  assert.deepEqual(order, ['other sandbox', 'inspection ended', 'pause'])
})

test('inspections of one sandbox run one after another', async () => {
  const queue = withInspections(createKeyedQueue())
  const { signal } = new AbortController()
  const results = await Promise.all([
    queue.inspect('a', async () => 1, signal),
    queue.inspect('a', async () => 2, signal),
  ])
  assert.deepEqual(results, [1, 2])
})

test('an inspection that waits does not begin once it is interrupted or its caller is gone', async () => {
  const queue = withInspections(createKeyedQueue())
  const first = Promise.withResolvers<void>()
  const pause = queue.run('a', () => first.promise)
  const caller = new AbortController()
  const never = async () => assert.fail('the inspection began')
  const waiting = queue.inspect('a', never, new AbortController().signal)
  const left = queue.inspect('a', never, caller.signal)
  const refused = [
    assert.rejects(waiting, { reason: 'inspection_interrupted' }),
    assert.rejects(left),
  ]
  caller.abort()
  const kill = queue.run('a', async () => {})
  // Both fail while the pause is still running.
  await Promise.all(refused)
  first.resolve()
  await Promise.all([pause, kill])
})

test('few inspections wait for one sandbox, and others do not notice', async () => {
  const queue = withInspections(createKeyedQueue())
  const first = Promise.withResolvers<void>()
  const { signal } = new AbortController()
  const inspect = (key: string) => queue.inspect(key, () => first.promise, signal)
  const accepted = Array.from({ length: 5 }, () => inspect('a'))
  await assert.rejects(inspect('a'), { reason: 'inspections_busy' })
  const other = queue.inspect('b', async () => 'done', signal)
  assert.equal(await other, 'done')
  first.resolve()
  await Promise.all(accepted)
  await inspect('a')
})
