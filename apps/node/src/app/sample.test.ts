import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSubnet, toSlot } from '../domain/slot.ts'
import { simulateNode } from '../sim/host.ts'
import { sampleSandboxes } from './sample.ts'

const slot = toSlot(parseSubnet('10.0.0.0/24'), 'atx-', 0)

function sandbox(sandboxId: string) {
  const record = {
    cellId: `c${sandboxId}`,
    templateId: 'base',
    cpuCount: 2,
    memoryMb: 256,
    diskSizeMb: 64,
    phase: 'running',
    runtime: 'gvisor',
    layer: 'l1',
    envd: 'e1',
    initToken: 't',
    disk: 'disk.img',
    owner: { sandboxId, envVars: {} },
  } as const
  return { record, slot }
}

test('a sample puts together what is read of a sandbox, and leaves out those that have gone', async () => {
  const asked: (readonly string[])[] = []
  const group = { cpuUsedNs: 7n, memoryUsedBytes: 8n, memoryCacheBytes: 9n }
  const disk = { usedBytes: 10n, totalBytes: 11n }
  const samples = await sampleSandboxes(['i1', 'inogroup', 'inodisk', 'inoprocess'].map(sandbox), {
    readGroup: async (id) => (id === 'cinogroup' ? undefined : group),
    readDisks: async (ids) => {
      asked.push(ids)
      return new Map(ids.filter((id) => id !== 'cinodisk').map((id) => [id, disk]))
    },
    ageNs: ({ record }) => (record.cellId === 'cinoprocess' ? undefined : 12n),
    nowNs: () => 13n,
  })
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

test('of one alone nothing else is read; of one that does not run, nothing', async () => {
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
