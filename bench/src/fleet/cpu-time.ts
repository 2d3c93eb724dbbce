import { readFile } from 'node:fs/promises'

/** Ticks per second of the kernel's counters, on all architectures that Atoll runs on. */
const ticksPerSecond = 100

/** Starts to measure the CPU time of these processes. Processes that end meanwhile do not count. */
export async function startCpuTime(pids: readonly number[]): Promise<() => Promise<CpuTime>> {
  const began = performance.now()
  const before = await Promise.all(pids.map(cpuMsOf))
  return async () => {
    const after = await Promise.all(pids.map(cpuMsOf))
    const differences = after.map((value, index) => Math.max(0, value - (before[index] ?? 0)))
    const usedMs = differences.reduce((sum, value) => sum + value, 0)
    const elapsedMs = performance.now() - began
    return { usedMs, elapsedMs, percent: (usedMs * 100) / elapsedMs }
  }
}

export interface CpuTime {
  readonly usedMs: number
  readonly elapsedMs: number
  /** Of one core. */
  readonly percent: number
}

async function cpuMsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name of the program, in parentheses, may have spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user = 0, system = 0] = fields.slice(11, 13).map(Number)
  return ((user + system) * 1000) / ticksPerSecond
}
