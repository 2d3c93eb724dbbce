/** What the sandbox uses of what it has. */
export interface Usage {
  /** Of all processes, since the sandbox started. */
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
  /** `memoryLimitBytes`: what the sandbox was given, where that is known better than by its kernel. */
  read(memoryLimitBytes: number | undefined): Promise<Usage>
}

/** CPU time from stat(5) of one process: its own, and that of children it has waited for. Zero for what is no such line. */
export function cpuTicksOf(stat: string): number {
  // The name of the program may hold anything, parentheses and blanks included.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields.slice(11, 15).map(Number)
  return ticks.length === 4 && ticks.every(Number.isFinite) ? ticks.reduce((a, b) => a + b) : 0
}

/** Pages that belong to one process alone, from statm(5). */
export function privatePagesOf(statm: string): number {
  const [, resident = Number.NaN, shared = Number.NaN] = statm.split(' ').map(Number)
  return Number.isFinite(resident - shared) ? Math.max(0, resident - shared) : 0
}

/** Undefined when the text is not that of /proc/meminfo. */
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
  const freeBytes = bytesOf('MemFree') + bytesOf('Buffers') + cacheBytes
  const totalBytes = bytesOf('MemTotal')
  return { totalBytes, usedBytes: Math.max(0, totalBytes - freeBytes), cacheBytes }
}
