import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitFor } from '@atoll/kit/wait'
import { Fault } from '@atoll/kit/fault'
import { createPrototypePreparation } from './prototype-preparation.ts'

const shapeOf = (templateId: string) => ({
  templateId,
  cpuCount: 1,
  memoryMb: 256,
  diskSizeMb: 64,
})

/** Creates prototypes that finish when the test says so. */
function setup() {
  const made = new Map<string, PromiseWithResolvers<boolean>>()
  const ended: string[] = []
  const preparation = createPrototypePreparation({
    patienceMs: 1,
    prototypes: {
      ensure({ templateId }, { signal } = {}) {
        const task = Promise.withResolvers<boolean>()
        made.set(templateId, task)
        const giveUp = () => task.reject(new Error('given up'))
        if (signal?.aborted) giveUp()
        signal?.addEventListener('abort', giveUp)
        return task.promise
      },
    },
    onSlowEnd: ({ templateId }, failure) =>
      void ended.push(failure ? `${templateId}: ${String(failure.error)}` : templateId),
  })
  return { preparation, made, ended }
}

test('a slow prototype continues in the background, and its end is reported', async () => {
  const { preparation, made, ended } = setup()
  assert.equal(await preparation.isDoneSoon(shapeOf('a')), false)
  assert.deepEqual(
    [preparation.isSlow(shapeOf('a')), preparation.isSlow(shapeOf('b'))],
    [true, false],
  )
  made.get('a')?.resolve(true)
  await waitFor('its end', () => ended.length === 1)
  assert.deepEqual([ended, preparation.isSlow(shapeOf('a'))], [['a'], false])
})

test('a prototype whose memory cannot be saved counts as done; other failures are reported at once', async () => {
  const { preparation, made } = setup()
  for (const [kind, isFine] of [
    ['invalid', true],
    ['internal', false],
  ] as const) {
    const soon = preparation.isDoneSoon(shapeOf(kind))
    made.get(kind)?.reject(new Fault(kind, 'odd', 'odd'))
    if (isFine) assert.equal(await soon, true)
    else await assert.rejects(soon, { reason: 'odd' })
    assert.equal(preparation.isSlow(shapeOf(kind)), false)
  }
})

test('two take long at a time, and a third is given up', async () => {
  const { preparation, ended } = setup()
  for (const name of ['a', 'b', 'c']) await preparation.isDoneSoon(shapeOf(name))
  await waitFor('the third', () => ended.length === 1)
  assert.deepEqual(ended, ['c: Error: given up'])
  assert.ok(preparation.isSlow(shapeOf('a')) && preparation.isSlow(shapeOf('b')))
})

test('prototypes of a deleted template are canceled, and all of them at the end', async () => {
  const { preparation, ended } = setup()
  for (const name of ['a', 'b']) await preparation.isDoneSoon(shapeOf(name))
  preparation.removeTemplate('a')
  await waitFor('its end', () => ended.length === 1)
  await preparation.close()
  assert.deepEqual(ended, ['a: Error: given up', 'b: Error: given up'])
  await assert.rejects(preparation.isDoneSoon(shapeOf('c')), /given up/)
})
