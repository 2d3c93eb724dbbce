import type { Clock } from '@atoll/kit/clock'
import type { Settings } from '../domain/sandbox/settings.ts'
import type { UsageSource } from '../domain/sandbox/usage.ts'

/** Response of GET /metrics, as clients expect it. Sizes are in bytes. */
export interface Metrics {
  /** Unix time in seconds. */
  readonly ts: number
  readonly cpu_count: number
  /** Share of all CPUs since the previous call. */
  readonly cpu_used_pct: number
  readonly mem_total: number
  readonly mem_used: number
  readonly mem_cache: number
  readonly mem_total_mib: number
  readonly mem_used_mib: number
  readonly disk_used: number
  readonly disk_total: number
}

export interface MetricsDeps {
  readonly usage: UsageSource
  readonly visibleCpuCount: () => number
  readonly clock: Clock
  /** Monotonic clock. */
  readonly nowMs: () => number
}

export function createMetrics(deps: MetricsDeps): (settings: Settings) => Promise<Metrics> {
  let last = { atMs: deps.nowMs(), cpuSeconds: 0 }
  return async ({ cpuCount = deps.visibleCpuCount(), memoryMb }) => {
    const { cpuSeconds, memory, disk } = await deps.usage.read(memoryMb && memoryMb * mebibyte)
    const now = { atMs: deps.nowMs(), cpuSeconds }
    const cpuUsed = percentOf(now.cpuSeconds - last.cpuSeconds, (now.atMs - last.atMs) * cpuCount)
    last = now
    return {
      ts: Math.floor(deps.clock.now().getTime() / 1000),
      cpu_count: cpuCount,
      cpu_used_pct: cpuUsed,
      mem_total: memory.totalBytes,
      mem_used: memory.usedBytes,
      mem_cache: memory.cacheBytes,
      mem_total_mib: Math.floor(memory.totalBytes / mebibyte),
      mem_used_mib: Math.floor(memory.usedBytes / mebibyte),
      disk_used: disk.usedBytes,
      disk_total: disk.totalBytes,
    }
  }
}

const mebibyte = 1024 * 1024

/** Percentage with two decimals, capped at 100: ticks are coarse, so a short interval may show more than that. */
function percentOf(usedSeconds: number, possibleMs: number): number {
  if (possibleMs <= 0) return 0
  const percent = (100 * usedSeconds * 1000) / possibleMs
  return Math.round(Math.min(100, Math.max(0, percent)) * 100) / 100
}
