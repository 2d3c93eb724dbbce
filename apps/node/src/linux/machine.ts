import { readFile, statfs } from 'node:fs/promises'
import { cpus, freemem, machine, totalmem } from 'node:os'
import {
  findMount,
  parseCpuFeatures,
  parseCpuInfo,
  parseHugePages,
} from '../domain/host/machine.ts'
import type { DiskUsage, MachineFacts, MachineUsage } from '../domain/host/machine.ts'

export async function readMachine(): Promise<MachineFacts> {
  return parseCpuInfo(await readFile('/proc/cpuinfo', 'utf8'), machine())
}

export async function readCpu(): Promise<{
  readonly architecture: string
  readonly features: string[]
}> {
  const features = parseCpuFeatures(await readFile('/proc/cpuinfo', 'utf8'))
  return { architecture: machine(), features }
}

/** Returns the memory that new processes can get without swapping. */
export async function freeMemoryBytes(): Promise<number> {
  const meminfo = await readFile('/proc/meminfo', 'utf8')
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? 0) * 1024
}

/**
 * Creates a function that measures CPU, memory and the disk of the data directory `dir`. CPU load is the average since
 * the previous call.
 */
export function createMeasure(dir: string): () => Promise<MachineUsage> {
  let previous = readCpuTimes()
  return async () => {
    const now = readCpuTimes()
    const total = now.total - previous.total
    const busy = now.busy - previous.busy
    previous = now
    const [meminfo, disk] = await Promise.all([readFile('/proc/meminfo', 'utf8'), readDisk(dir)])
    return {
      cpuCount: cpus().length,
      cpuPercent: total > 0 ? (100 * busy) / total : 0,
      memoryTotalBytes: totalmem(),
      memoryUsedBytes: totalmem() - freemem(),
      hugePages: parseHugePages(meminfo),
      disks: disk ? [disk] : [],
    }
  }
}

function readCpuTimes(): { readonly busy: number; readonly total: number } {
  let busy = 0
  let idle = 0
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq
    idle += times.idle
  }
  return { busy, total: busy + idle }
}

async function readDisk(dir: string): Promise<DiskUsage | undefined> {
  const [{ bsize, blocks, bfree }, mountInfo] = await Promise.all([
    statfs(dir),
    readFile('/proc/self/mountinfo', 'utf8'),
  ])
  const mount = findMount(mountInfo, dir)
  return mount && { ...mount, usedBytes: bsize * (blocks - bfree), totalBytes: bsize * blocks }
}
