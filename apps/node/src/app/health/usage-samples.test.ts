import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simulateNode } from '../../sim/node.ts'
import { runningSandbox } from '../../sim/running-sandbox.ts'
import { sampleSandboxes } from './usage-samples.ts'

test('a sample combines all readings of a sandbox, and omits sandboxes that have ended', async () => {
  const asked: (readonly string[])[] = []
  const group = { cpuUsedNs: 7n, memoryUsedBytes: 8n, memoryCacheBytes: 9n }
  const disk = { usedBytes: 10n, totalBytes: 11n }
  const samples = await sampleSandboxes(
    ['i1', 'inogroup', 'inodisk', 'inoprocess'].map(runningSandbox),
    {
      readGroup: async (id) => (id === 'inogroup' ? undefined : group),
      readDisks: async (ids) => {
        asked.push(ids)
        return new Map(ids.filter((id) => id !== 'inodisk').map((id) => [id, disk]))
      },
      ageNs: ({ record }) => (record.cellId === 'inoprocess' ? undefined : 12n),
      nowNs: () => 13n,
    },
  )
  assert.deepEqual(samples, [
    {
      sandboxId: 'i1',
      cpuCount: 2,
      ...group,
      readAtNs: 13n,
      ageNs: 12n,
      memoryTotalBytes: 268_435_456n,
      diskUsedBytes: 10n,
      diskTotalBytes: 11n,
    },
  ])
  assert.equal(asked.length, 1)
})

test('a sample of one sandbox reads no other; a sandbox that does not run has none', async () => {
  const { create, sandboxes } = simulateNode()
  await create({ sandboxId: 'i1' })
  const { record } = await create({ sandboxId: 'i2' })
  await create({ sandboxId: 'i3' })
  await sandboxes.pause('i3', { keepMemory: true })
  const read: string[] = []
  const sample = (sandboxId: string) =>
    sampleSandboxes(sandboxes.running(sandboxId), {
      async readGroup(id) {
        read.push(`group ${id}`)
        return { cpuUsedNs: 7n, memoryUsedBytes: 8n, memoryCacheBytes: 9n }
      },
      async readDisks(ids) {
        read.push(...ids.map((id) => `disk ${id}`))
        return new Map(ids.map((id) => [id, { usedBytes: 10n, totalBytes: 11n }]))
      },
      ageNs: () => 12n,
      nowNs: () => 13n,
    })
  const samples = await Promise.all(['i2', 'i3', 'inowhere', ''].map(sample))
  assert.deepEqual(
    samples.map((found) => found.map(({ sandboxId }) => sandboxId)),
    [['i2'], [], [], []],
  )
  assert.deepEqual(read, [`disk ${record.cellId}`, `group ${record.cellId}`])
})
