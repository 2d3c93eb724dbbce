import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { createMeasure, readMachine } from './machine.ts'

test('the values read from this machine are plausible', async () => {
  assert.match((await readMachine()).cpuArchitecture, /^\w+$/)
  const measure = createMeasure(tmpdir())
  const end = performance.now() + 50
  while (performance.now() < end); // keeps a CPU busy
  const usage = await measure()
  assert.ok(usage.cpuPercent >= 0 && usage.cpuPercent <= 100, `${usage.cpuPercent} %`)
  assert.ok(usage.cpuCount >= 1)
  assert.ok(usage.memoryUsedBytes > 0 && usage.memoryUsedBytes < usage.memoryTotalBytes)
  const [disk] = usage.disks
  assert.ok(disk && disk.usedBytes > 0 && disk.usedBytes <= disk.totalBytes)
  assert.match(disk.mountPoint, /^\//)
})
