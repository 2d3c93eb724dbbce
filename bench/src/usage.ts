/** Memory and CPU use of processes and control groups, read on the host. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const mebibyte = 1024 * 1024

export async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024
}

/** Anonymous and shared memory, which the kernel cannot reclaim without swapping. */
export async function groupMemoryMb(cgroup: string): Promise<number> {
  const stat = await groupFile(cgroup, ['memory.stat'])
  const field = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0)
  // Anonymous pages are `rss` in cgroup v1 and `anon` in v2.
  return (field('rss') + field('anon') + field('shmem')) / mebibyte
}

/** Memory including the page cache that is charged to the group. */
export async function groupUsageMb(cgroup: string): Promise<number> {
  return Number(await groupFile(cgroup, ['memory.usage_in_bytes', 'memory.current'])) / mebibyte
}

/** CPU time since the group was created, in microseconds. */
export async function groupCpuUs(cgroup: string): Promise<number> {
  const text = await groupFile(cgroup, ['cpuacct.usage', 'cpu.stat'])
  const usage = /^usage_usec (\d+)$/m.exec(text)?.[1]
  return usage === undefined ? Number(text) / 1000 : Number(usage)
}

/** Reads the first of `files` that exists: names differ between cgroup v1 and v2. */
async function groupFile(cgroup: string, files: readonly string[]): Promise<string> {
  const roots = await hierarchies()
  for (const file of files) {
    for (const root of roots) {
      const text = await readFile(join(root, cgroup, file), 'utf8').catch(() => undefined)
      if (text !== undefined && text !== '') return text.trim()
    }
  }
  throw new Error(`Control group ${cgroup} has none of these files: ${files.join(', ')}`)
}

async function hierarchies(): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return table
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? '')
}

export interface Peak {
  /** Returns the largest value. */
  stop(): Promise<number>
}

/** Polls `value` until stopped. */
export function watchPeak(value: () => Promise<number>): Peak {
  let peak = 0
  let stopped = false
  const watching = (async () => {
    while (!stopped) {
      peak = Math.max(peak, await value())
      await new Promise((resolve) => setTimeout(resolve, pollIntervalMs))
    }
  })()
  return {
    async stop() {
      stopped = true
      await watching
      return peak
    },
  }
}

const pollIntervalMs = 50
