import { writeFileSync } from 'node:fs'
import { readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { killProcess } from './process.ts'

/** Control groups of one instance, in whatever hierarchies this machine has: v2, v1, or both side by side. */
export interface Cgroups {
  /** Ids of the cells that have a group. */
  list(): Promise<string[]>
  /** Nothing in the group goes on, and it takes no processor time, until it is thawed: both take microseconds. */
  freeze(cellId: string): Promise<void>
  /** Also when it is not frozen. False when there is no such group. */
  thaw(cellId: string): Promise<boolean>
  /** From here on it gets no more of the processors than others do. Never fails: it would only be too quick. */
  level(cellId: string): Promise<void>
  /** Kills whatever is in the group and removes it. Succeeds when there is none. */
  remove(cellId: string): Promise<void>
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

    async freeze(cellId) {
      if (writeFirst(await folders(cellId), frozenBy)) return
      throw new Error(`the control group of ${cellId} cannot be frozen`)
    },

    async thaw(cellId) {
      return writeFirst(await folders(cellId), thawedBy)
    },

    async level(cellId) {
      writeFirst(await folders(cellId), usualWeights)
    },

    async remove(cellId) {
      // In a frozen group of version 1 nothing dies.
      await this.thaw(cellId)
      for (const folder of await folders(cellId)) await removeTree(folder)
    },

    async removeAll() {
      for (const folder of await folders()) await removeTree(folder)
    },
  }
}

let known: Promise<string[]> | undefined

/** They do not move while a machine runs. */
function hierarchies(): Promise<string[]> {
  return (known ??= findHierarchies())
}

async function findHierarchies(): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return table
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? mountRoot)
}

/** A file of the kernel's and what to write to it, in version 1 and 2. */
type Switches = readonly (readonly [file: string, value: string])[]

const frozenBy: Switches = [
  ['freezer.state', 'FROZEN'],
  ['cgroup.freeze', '1'],
]
const thawedBy: Switches = [
  ['freezer.state', 'THAWED'],
  ['cgroup.freeze', '0'],
]
/** What a group has that nobody gave another. */
const usualWeights: Switches = [
  ['cpu.shares', '1024'],
  ['cpu.weight', '100'],
]

/** Where each is, of many hierarchies: to look into all of them takes longer than to write. */
const places = new Map<Switches, number>()

/** Of several hierarchies one has the switch. False where none has it for this group. */
function writeFirst(folders: readonly string[], switches: Switches): boolean {
  const isDone = (folder: string | undefined) =>
    folder !== undefined && switches.some(([file, value]) => tryWrite(join(folder, file), value))
  if (isDone(folders[places.get(switches) ?? -1])) return true
  const index = folders.findIndex(isDone)
  if (index >= 0) places.set(switches, index)
  return index >= 0
}

/** Makes no file where there is none: the kernel's own only, which takes microseconds; the thread pool would take longer. */
function tryWrite(path: string, value: string): boolean {
  try {
    writeFileSync(path, value, { flag: 'r+' })
    return true
  } catch {
    return false
  }
}

/** Depth first: a group can be removed only when it has neither processes nor groups below it. */
async function removeTree(folder: string): Promise<void> {
  for (const entry of await subfolders(folder)) await removeTree(join(folder, entry))
  await waitFor(
    `control group ${folder} to empty`,
    async () => {
      for (const pid of await processesOf(folder)) killProcess(pid)
      return rmdir(folder).then(
        () => true,
        (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
      )
    },
    { timeoutMs: 30_000 },
  )
}

async function processesOf(folder: string): Promise<number[]> {
  const text = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')
  return text.split('\n').filter(Boolean).map(Number)
}

async function subfolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}
