import { readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { killProcess } from './process.ts'

/** Control groups of one instance, in whatever hierarchies this machine has: v2, v1, or both side by side. */
export interface Cgroups {
  /** Ids of the sandboxes that have a group. */
  list(): Promise<string[]>
  /** How often the kernel ended a process of this group for lack of memory. */
  oomKills(sandboxId: string): Promise<number>
  /** Kills whatever is in the group and removes it. Succeeds when there is none. */
  remove(sandboxId: string): Promise<void>
  /** Removes the instance's own groups; they must be empty of sandboxes. */
  removeAll(): Promise<void>
}

const mountRoot = '/sys/fs/cgroup'

export function createCgroups(parent: string): Cgroups {
  const folders = (...path: string[]) =>
    hierarchies().then((roots) => roots.map((root) => join(root, parent, ...path)))
  return {
    async list() {
      const ids = new Set<string>()
      for (const folder of await folders()) {
        for (const entry of await subfolders(folder)) ids.add(entry)
      }
      return [...ids]
    },

    async oomKills(sandboxId) {
      let kills = 0
      for (const folder of await folders(sandboxId)) {
        for (const file of ['memory.events', 'memory.oom_control']) {
          const text = await readFile(join(folder, file), 'utf8').catch(() => '')
          kills += Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
        }
      }
      return kills
    },

    async remove(sandboxId) {
      for (const folder of await folders(sandboxId)) await removeTree(folder)
    },

    async removeAll() {
      for (const folder of await folders()) await removeTree(folder)
    },
  }
}

async function hierarchies(): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return table
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? mountRoot)
}

/** Depth first: a group can be removed only when it has neither processes nor groups below it. */
async function removeTree(folder: string): Promise<void> {
  for (const entry of await subfolders(folder)) await removeTree(join(folder, entry))
  await waitFor(`control group ${folder} to empty`, async () => {
    for (const pid of await processesOf(folder)) killProcess(pid)
    return rmdir(folder).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
    )
  })
}

async function processesOf(folder: string): Promise<number[]> {
  const text = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')
  return text.split('\n').filter(Boolean).map(Number)
}

async function subfolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}
