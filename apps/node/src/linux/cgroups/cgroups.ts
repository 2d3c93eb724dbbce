import { writeFileSync } from 'node:fs'
import { readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from '@atoll/kit/wait'
import { killProcess } from '../processes/process.ts'

/** Control groups of one installation, in all hierarchies of this machine: v2, v1 or both. */
export interface Cgroups {
  /** Lists the IDs of cells that have a group. */
  list(): Promise<string[]>
  /** Stops all processes of the group until `thaw`. Takes microseconds. */
  freeze(cellId: string): Promise<void>
  /** Thaws the group, frozen or not. Returns false when the group does not exist. */
  thaw(cellId: string): Promise<boolean>
  /** Resets the CPU weight to the default. Never fails: at worst the group keeps its boot-time priority. */
  dropBootPriority(cellId: string): Promise<void>
  /** Kills all processes in the group and removes it. Succeeds when the group does not exist. */
  remove(cellId: string): Promise<void>
  /** Removes the groups of the installation; they must not contain sandboxes. */
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

    async dropBootPriority(cellId) {
      writeFirst(await folders(cellId), defaultWeights)
    },

    async remove(cellId) {
      // Processes in a frozen v1 group cannot die.
      await this.thaw(cellId)
      for (const folder of await folders(cellId)) await removeTree(folder)
    },

    async removeAll() {
      for (const folder of await folders()) await removeTree(folder)
    },
  }
}

let cachedHierarchies: Promise<string[]> | undefined

/** Caches the hierarchies: they do not change while the machine runs. */
function hierarchies(): Promise<string[]> {
  return (cachedHierarchies ??= findHierarchies())
}

async function findHierarchies(): Promise<string[]> {
  const table = await readFile('/proc/self/mountinfo', 'utf8')
  return table
    .split('\n')
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(' ')[4] ?? mountRoot)
}

/** Kernel files and the values to write to them, for v1 and v2. */
type Switches = readonly (readonly [file: string, value: string])[]

const frozenBy: Switches = [
  ['freezer.state', 'FROZEN'],
  ['cgroup.freeze', '1'],
]
const thawedBy: Switches = [
  ['freezer.state', 'THAWED'],
  ['cgroup.freeze', '0'],
]
/** Kernel defaults. */
const defaultWeights: Switches = [
  ['cpu.shares', '1024'],
  ['cpu.weight', '100'],
]

/** Index of the hierarchy that has each switch: searching all of them takes longer than the write. */
const hierarchyIndexes = new Map<Switches, number>()

/** Writes to the one hierarchy that has the switch. Returns false when none has it for this group. */
function writeFirst(folders: readonly string[], switches: Switches): boolean {
  const isDone = (folder: string | undefined) =>
    folder !== undefined && switches.some(([file, value]) => tryWrite(join(folder, file), value))
  if (isDone(folders[hierarchyIndexes.get(switches) ?? -1])) return true
  const index = folders.findIndex(isDone)
  if (index >= 0) hierarchyIndexes.set(switches, index)
  return index >= 0
}

/** Writes to an existing kernel file, never creates one. Synchronous: takes microseconds, less than the thread pool. */
function tryWrite(path: string, value: string): boolean {
  try {
    writeFileSync(path, value, { flag: 'r+' })
    return true
  } catch {
    return false
  }
}

/** Removes depth first: the kernel removes a group only when it has no processes and no child groups. */
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
    // Killed processes end within milliseconds, and callers wait for it.
    { timeoutMs: 30_000, intervalMs: 5 },
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
