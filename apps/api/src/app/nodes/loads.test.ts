import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeUsage } from '../../domain/node.ts'
import { createLoads } from './loads.ts'

const gigabyte = 1024 ** 3
const shape = { nodeTemplateId: 'base', cpuCount: 2, memoryMb: 1024, diskSizeMb: 2048 }

const usage: NodeUsage = {
  sandboxCount: 3,
  pausedCount: 0,
  pools: [{ templateId: 'base', ready: 1, target: 2 }],
  snapshotPools: [],
  allocatedCpuCount: 6,
  allocatedMemoryBytes: 3 * gigabyte,
  cpuCount: 16,
  cpuPercent: 50,
  memoryTotalBytes: 64 * gigabyte,
  memoryUsedBytes: 4 * gigabyte,
  hugePages: { total: 0, used: 0, reserved: 0, pageSizeBytes: 0 },
  disks: [
    {
      mountPoint: '/',
      device: 'a',
      fileSystem: 'ext4',
      usedBytes: gigabyte,
      totalBytes: 9 * gigabyte,
    },
  ],
}

test('a measured node has its capacity, its use and its ready cells', () => {
  const loads = createLoads()
  loads.beginMeasuring('n1')(usage)
  assert.deepEqual(loads.describe('n1', shape), {
    id: 'n1',
    capacity: { cpuCount: 16, memoryBytes: 64 * gigabyte, diskBytes: 9 * gigabyte },
    promised: { cpuCount: 6, memoryBytes: 3 * gigabyte, diskBytes: 0 },
    used: { cpuCount: 8, memoryBytes: 4 * gigabyte, diskBytes: gigabyte },
    hasReadyCell: true,
    hasLayers: true,
  })
  assert.equal(loads.describe('n1', { ...shape, nodeTemplateId: 'x' }).hasReadyCell, false)
})

test('a sandbox counts from its placement until a measurement that began after its start', () => {
  const loads = createLoads()
  const promised = () => loads.describe('n1', shape).promised.cpuCount
  const reservation = loads.reserve('n1', shape)
  assert.equal(promised(), 2)
  const early = loads.beginMeasuring('n1')
  reservation.settle()
  early(usage)
  assert.equal(promised(), 8)
  loads.beginMeasuring('n1')({ ...usage, allocatedCpuCount: 8 })
  assert.equal(promised(), 8)
  loads.reserve('n1', shape).cancel()
  assert.equal(promised(), 8)
})
