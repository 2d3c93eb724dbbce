import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Usage of a control group, read from v1 or v2, whichever counts it on this machine. */
export interface CgroupUsage {
  /** CPU time on all cores since the group was created. */
  readonly cpuUsedNs: bigint
  readonly memoryUsedBytes: bigint
  /** Page cache, which the kernel reclaims when memory is short. */
  readonly memoryCacheBytes: bigint
}

export interface CgroupUsageReader {
  /** Returns undefined when the group does not exist. */
  read(sandboxId: string): Promise<CgroupUsage | undefined>
  /** Reads only the CPU time. Synchronous; takes microseconds. */
  cpuUsedNs(sandboxId: string): bigint | undefined
  /** Number of processes in the group that the OOM killer ended. Synchronous; takes microseconds. */
  oomKills(sandboxId: string): number
}

/** Looks up the hierarchies once: they do not change while the machine runs. */
export async function openCgroupUsage(parent: string): Promise<CgroupUsageReader> {
  const { cpu, memory } = findCounters(await readFile('/proc/self/mountinfo', 'utf8'))
  return {
    async read(sandboxId) {
      const text = (root: string, file: string) =>
        readFile(join(root, parent, sandboxId, file), 'utf8')
      try {
        const [cpuText, memoryText, memoryStat] = await Promise.all([
          text(cpu.root, cpuFiles[cpu.version]),
          text(memory.root, memoryFiles[memory.version]),
          text(memory.root, 'memory.stat'),
        ])
        const cpuUsedNs = parseCpu(cpu.version, cpuText)
        return { cpuUsedNs, ...parseMemory(memory.version, memoryText, memoryStat) }
      } catch (error) {
        if (isGone(error)) return undefined
        throw error
      }
    },
    cpuUsedNs(sandboxId) {
      const text = readNow(join(cpu.root, parent, sandboxId, cpuFiles[cpu.version]))
      return text === undefined ? undefined : parseCpu(cpu.version, text)
    },
    oomKills(sandboxId) {
      const text = readNow(join(memory.root, parent, sandboxId, oomFiles[memory.version]))
      // Kernels before 4.13 do not count OOM kills in v1.
      return Number(/^oom_kill (\d+)$/m.exec(text ?? '')?.[1] ?? 0)
    },
  }
}

function readNow(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

type Version = 'v1' | 'v2'

interface Counter {
  readonly version: Version
  readonly root: string
}

const cpuFiles = { v1: 'cpuacct.usage', v2: 'cpu.stat' } as const
const memoryFiles = { v1: 'memory.usage_in_bytes', v2: 'memory.current' } as const
const oomFiles = { v1: 'memory.oom_control', v2: 'memory.events' } as const

/** Finds each controller. A controller mounted in v1 is not available in v2. */
export function findCounters(mountinfo: string): { cpu: Counter; memory: Counter } {
  const mounts = mountinfo.split('\n').flatMap((line) => {
    const [, root, type, options = ''] =
      /^\S+ \S+ \S+ \S+ (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line) ?? []
    return root === undefined ? [] : [{ root, type, controllers: options.split(',') }]
  })
  const unified = mounts.find(({ type }) => type === 'cgroup2')
  const find = (controller: string): Counter => {
    const own = mounts.find(
      ({ type, controllers }) => type === 'cgroup' && controllers.includes(controller),
    )
    if (own) return { version: 'v1', root: own.root }
    if (unified) return { version: 'v2', root: unified.root }
    throw new Error(`this machine has no control groups that count ${controller}`)
  }
  return { cpu: find('cpuacct'), memory: find('memory') }
}

export function parseCpu(version: Version, text: string): bigint {
  return version === 'v1' ? BigInt(text.trim()) : fieldOf(text, 'usage_usec') * 1000n
}

/**
 * Splits usage into used and cache. The kernel counts shared memory as cache, but cannot reclaim it; gVisor uses shared
 * memory.
 */
export function parseMemory(version: Version, usage: string, stat: string) {
  const [files, shared] =
    version === 'v1'
      ? [fieldOf(stat, 'total_cache'), fieldOf(stat, 'total_shmem')]
      : [fieldOf(stat, 'file'), fieldOf(stat, 'shmem')]
  const total = BigInt(usage.trim())
  // The kernel updates these numbers one after the other, so the cache may exceed the total.
  const cache = smaller(files > shared ? files - shared : 0n, total)
  return { memoryUsedBytes: total - cache, memoryCacheBytes: cache }
}

function fieldOf(text: string, name: string): bigint {
  const value = new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]
  if (value === undefined) throw new Error(`the control group does not count ${name}`)
  return BigInt(value)
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

/** Tests whether the group was removed. A read during the removal fails with ENODEV. */
function isGone(error: unknown): boolean {
  if (!(error instanceof Error && 'code' in error)) return false
  return error.code === 'ENOENT' || error.code === 'ENODEV'
}
