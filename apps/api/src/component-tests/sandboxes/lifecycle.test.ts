import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApiUnderTest } from '../../sim/api.ts'

/** Lifecycle settings are stored and returned. */

const wishes = [
  [{}, { autoResume: false, onTimeout: 'kill' }],
  [{ autoPause: true }, { autoResume: false, onTimeout: 'pause' }],
  [
    { autoPause: true, autoPauseMemory: false },
    { autoResume: false, onTimeout: 'pause' },
  ],
  [
    { autoPause: true, autoResume: { enabled: true } },
    { autoResume: true, onTimeout: 'pause' },
  ],
  [{ autoResume: { enabled: true } }, { autoResume: true, onTimeout: 'kill' }],
] as const

test('the lifecycle of a sandbox is shown as it was asked for, by both creates and after a restart', async () => {
  await using api = await startApiUnderTest()
  const made: { id: string; shown: object }[] = []
  for (const path of ['/sandboxes', '/v2/sandboxes']) {
    for (const [fields, shown] of wishes) {
      const body = { templateID: 'base', timeout: 60, ...fields }
      const { status, json, text } = await api.call('POST', path, { body })
      assert.equal(status, 201, text)
      made.push({ id: Object(json).sandboxID, shown })
    }
  }
  await api.restart()
  for (const { id, shown } of made) {
    assert.deepEqual(Object((await api.call('GET', `/sandboxes/${id}`)).json).lifecycle, shown)
  }
})

test('the time that a sandbox was created with is kept, whatever becomes of it', async () => {
  await using api = await startApiUnderTest()
  const id = await api.create({ timeout: 77 })
  await api.call('POST', `/sandboxes/${id}/timeout`, { body: { timeout: 900 } })
  const kept = await api.withStores(({ sandboxes }) => sandboxes.find(id))
  assert.deepEqual(
    [kept?.timeoutSeconds, kept?.lifecycle],
    [77, { autoPause: false, autoPauseMemory: true, autoResume: false }],
  )
})
