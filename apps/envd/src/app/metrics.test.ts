import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

function setup() {
  const state = { nowMs: 1000, cpuSeconds: 0 }
  const metrics = createMetrics({
    usage: {
      read: async (limit) => ({
        cpuSeconds: state.cpuSeconds,
        memory: { totalBytes: limit ?? 5, usedBytes: 3_000_000, cacheBytes: 1 },
        disk: { totalBytes: 10, usedBytes: 4 },
      }),
    },
    visibleCpuCount: () => 8,
    clock: { now: () => new Date(1999) },
    nowMs: () => state.nowMs,
  })
  const settings = { envVars: {}, defaultUser: 'root' }
  return { state, metrics, settings }
}

test('CPU usage is measured since the previous call and stays within 0 to 100 %', async () => {
  const { state, metrics, settings } = setup()
  const shares = []
  for (const [passedMs, usedSeconds] of [
    [1000, 1],
    [3000, 1],
    [1000, 0],
    [0, 1],
    [10, 1],
    [1000, -5],
    [86_400_000, 1],
    [-1000, 1],
  ] as const) {
    state.nowMs += passedMs
    state.cpuSeconds += usedSeconds
    shares.push((await metrics({ ...settings, cpuCount: 2 })).cpu_used_pct)
  }
  assert.deepEqual(shares, [50, 16.67, 0, 0, 100, 0, 0, 0])
})

test("limits from the settings take precedence over the kernel's values", async () => {
  const { metrics, settings } = setup()
  const result = await metrics({ ...settings, cpuCount: 1, memoryMb: 512 })
  assert.deepEqual(
    [result.cpu_count, result.mem_total, result.mem_total_mib],
    [1, 536_870_912, 512],
  )
  assert.deepEqual([result.ts, result.mem_used_mib, result.disk_used], [1, 2, 4])
  const shown = await metrics(settings)
  assert.deepEqual([shown.cpu_count, shown.mem_total], [8, 5])
})
