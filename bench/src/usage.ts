/** What processes and control groups use, from the outside. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const mebibyte = 1024 * 1024

/** Resident memory of one process, in MiB. */
export async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024
}

/** Memory that no file stands behind and that goes only with its owners: private pages and shared ones of no disk. */
export async function groupMemoryMb(cgroup: string): Promise<number> {
  const stat = await groupFile(cgroup, ['memory.stat'])
  const field = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0)
  // Version 1 calls private pages rss, version 2 anon; each has none of the other's name.
  return (field('rss') + field('anon') + field('shmem')) / mebibyte
}

/** The same with the cache of files that the group was the first to read. */
export async function groupUsageMb(cgroup: string): Promise<number> {
  return Number(await groupFile(cgroup, ['memory.usage_in_bytes', 'memory.current'])) / mebibyte
}

/** Microseconds of processor time since the group was made. */
export async function groupCpuUs(cgroup: string): Promise<number> {
  const text = await groupFile(cgroup, ['cpuacct.usage', 'cpu.stat'])
  const usage = /^usage_usec (\d+)$/m.exec(text)?.[1]
  return usage === undefined ? Number(text) / 1000 : Number(usage)
}

/** The first of `files` that a hierarchy of control groups has for this group. */
async function groupFile(cgroup: string, files: readonly string[]): Promise<string> {
  const roots = await hierarchies()
  for (const file of files) {
    for (const root of roots) {
      const text = await readFile(join(root, cgroup, file), 'utf8').catch(() => undefined)
      if (text !== undefined && text !== '') return text.trim()
    }
  }
  throw new Error(`the control group ${cgroup} has none of ${files.join(', ')}`)
}

async function hierarchies(): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return table
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? '')
}

export interface Peak {
  /** The largest value seen. */
  stop(): Promise<number>
}

/** Looks at `value` again and again until stopped. */
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
