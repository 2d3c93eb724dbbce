/**
 * Reads from /proc what the sandbox uses. Under gVisor that tells the sandbox's own memory, but no CPU time of the
 * machine; under runc it tells both of the host. So CPU time is summed up over the processes, which works in both: what
 * an ended process has used is counted to the one that waited for it. Memory is summed up likewise where the kernel
 * shows more of it than the sandbox was given.
 */
import { readFile, readdir, statfs } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { cpuTicksOf, parseMemory, privatePagesOf } from '../domain/sandbox/usage.ts'
import type { MemoryUsage, UsageSource } from '../domain/sandbox/usage.ts'

export const procUsage: UsageSource = {
  async read(memoryLimitBytes) {
    const processes = await readProcesses()
    return {
      cpuSeconds: processes.cpuTicks / ticksPerSecond,
      memory: await readMemory(memoryLimitBytes, processes.privatePages * pageBytes),
      disk: await diskOf('/'),
    }
  },
}

export const visibleCpuCount = availableParallelism

/** The same on every Linux that a program sees (time(7): USER_HZ). */
const ticksPerSecond = 100
const pageBytes = 4096

async function readProcesses(): Promise<{ cpuTicks: number; privatePages: number }> {
  let cpuTicks = 0
  let privatePages = 0
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    cpuTicks += cpuTicksOf(await contentOf(`/proc/${pid}/stat`))
    privatePages += privatePagesOf(await contentOf(`/proc/${pid}/statm`))
  }
  return { cpuTicks, privatePages }
}

/** Empty for a process that has ended in the meantime. */
function contentOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

async function readMemory(
  limitBytes: number | undefined,
  privateBytes: number,
): Promise<MemoryUsage> {
  const seen = parseMemory(await readFile('/proc/meminfo', 'utf8'))
  if (!seen) throw new Error('/proc/meminfo does not tell how much memory there is')
  if (limitBytes === undefined || seen.totalBytes <= limitBytes) return seen
  const inMemory = await Promise.all(['/dev/shm', '/run'].map(diskOf))
  const usedBytes = inMemory.reduce((sum, { usedBytes: used }) => sum + used, privateBytes)
  return { totalBytes: limitBytes, usedBytes: Math.min(usedBytes, limitBytes), cacheBytes: 0 }
}

async function diskOf(path: string) {
  const { bsize, blocks, bfree } = await statfs(path)
  return { totalBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize }
}
