/**
 * Reads resource usage from /proc. Under gVisor /proc shows the sandbox's memory but no total CPU time; under runc
 * it shows both for the whole host. So CPU time is summed over processes, which works in both cases: the time of an
 * exited process is added to its parent. Memory is summed likewise if the kernel shows more than the limit of the
 * sandbox.
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

/** USER_HZ, the same on every Linux (time(7)). */
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

/** Returns an empty text if the process has exited. */
function contentOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '')
}

async function readMemory(
  limitBytes: number | undefined,
  privateBytes: number,
): Promise<MemoryUsage> {
  const seen = parseMemory(await readFile('/proc/meminfo', 'utf8'))
  if (!seen) throw new Error('/proc/meminfo has no MemTotal')
  if (limitBytes === undefined || seen.totalBytes <= limitBytes) return seen
  const inMemory = await Promise.all(['/dev/shm', '/run'].map(diskOf))
  const usedBytes = inMemory.reduce((sum, { usedBytes: used }) => sum + used, privateBytes)
  return { totalBytes: limitBytes, usedBytes: Math.min(usedBytes, limitBytes), cacheBytes: 0 }
}

async function diskOf(path: string) {
  const { bsize, blocks, bfree } = await statfs(path)
  return { totalBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize }
}
