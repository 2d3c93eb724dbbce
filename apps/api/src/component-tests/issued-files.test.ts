import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApiUnderTest } from '../sim/api.ts'

test('the store remembers a deleted snapshot for a while, and one with a record as long as that', async () => {
  await using api = await startApiUnderTest()
  const sandboxId = await api.create({ timeout: 3600 })
  const snapshot = {
    ...{ nodeId: 'sim', teamId: api.ours.teamId, sandboxId, holder: 'p', createdAt: new Date() },
    ...{ sizeBytes: undefined, buildId: undefined },
  }
  await api.withStores(async ({ snapshots, issuedFiles }) => {
    for (const id of ['kept', 'deleted']) await snapshots.insert({ ...snapshot, id })
    await snapshots.delete('deleted')
    const remembered = async () => [...(await issuedFiles.among(['kept', 'deleted', 'never']))]
    assert.deepEqual((await remembered()).toSorted(), ['deleted', 'kept'])
    await issuedFiles.forgetUnused(new Date(2_000), new Date(1_000))
    assert.deepEqual((await remembered()).toSorted(), ['deleted', 'kept'])
    await issuedFiles.forgetUnused(new Date(9_000), new Date(2_001))
    assert.deepEqual(await remembered(), ['kept'])
    await snapshots.delete('kept')
  })
})
