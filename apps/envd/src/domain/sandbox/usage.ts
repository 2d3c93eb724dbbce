export interface Usage {
  /** CPU time of all processes since the sandbox started. */
  readonly cpuSeconds: number
  readonly memory: MemoryUsage
  readonly disk: { readonly totalBytes: number; readonly usedBytes: number }
}

export interface MemoryUsage {
  readonly totalBytes: number
  readonly usedBytes: number
  readonly cacheBytes: number
}

export interface UsageSource {
  /** `memoryLimitBytes` is the memory limit of the sandbox; undefined if envd has not received one. */
  read(memoryLimitBytes: number | undefined): Promise<Usage>
}

/**
 * Sums the CPU ticks of a process and of its reaped children, from a /proc/PID/stat line. Returns 0 for any other
 * text.
 */
export function cpuTicksOf(stat: string): number {
  // The program name may contain any character, including parentheses and spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).map(Number) // utime, stime, cutime, cstime of proc(5)
  return ticks.length === 4 && ticks.every(Number.isFinite) ? ticks.reduce((a, b) => a + b) : 0
}

/** Counts the unshared resident pages of a process, from a /proc/PID/statm line. Returns 0 for any other text. */
export function privatePagesOf(statm: string): number {
  const [, resident = Number.NaN, shared = Number.NaN] = statm.split(' ').map(Number)
  return Number.isFinite(resident - shared) ? Math.max(0, resident - shared) : 0
}

/** Returns undefined if the text is not from /proc/meminfo. */
export function parseMemory(meminfo: string): MemoryUsage | undefined {
  const kilobytes = new Map(
    [...meminfo.matchAll(/^(\w+):\s+(\d+) kB$/gm)].map(([, name = '', count]) => [
      name,
      Number(count),
    ]),
  )
  const bytesOf = (name: string) => (kilobytes.get(name) ?? 0) * 1024
  if (bytesOf('MemTotal') === 0) return undefined
  const cacheBytes = bytesOf('Cached') + bytesOf('SReclaimable')
  const availableBytes = bytesOf('MemFree') + bytesOf('Buffers') + cacheBytes
  const totalBytes = bytesOf('MemTotal')
  return { totalBytes, usedBytes: Math.max(0, totalBytes - availableBytes), cacheBytes }
}
