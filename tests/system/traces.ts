/** Counts what sandboxes leave on the host, by kind. */
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cells, hostState, processesOfCell } from './host-state.ts'
import type { CellOnDisk, Names } from './host-state.ts'

/** Names on the host by kind: one for each running sandbox, none for any other. Blank cells are left out. */
export interface Traces {
  readonly folders: readonly string[]
  /** Folders of paused sandboxes, which have no other traces. */
  readonly pausedFolders: readonly string[]
  readonly snapshots: readonly string[]
  readonly groups: readonly string[]
  readonly groupsWithProcesses: readonly string[]
  readonly loopDevices: readonly string[]
  readonly disks: readonly string[]
  readonly roots: readonly string[]
  /** Links of network slots. */
  readonly links: readonly string[]
  readonly networkNamespaces: readonly string[]
  readonly firewallElements: readonly string[]
  /** Runtime files, mounts and processes that belong to none of the folders. */
  readonly strays: readonly string[]
}

export async function tracesOf(names: Names): Promise<Traces> {
  const state = await hostState(names, '')
  const { dataDir, runDir } = names
  const records = new Map((await cells(dataDir)).map((cell) => [cell.cellId, cell]))
  const isPaused = (name: string) => records.get(name)?.phase === 'paused'
  const blanks = [...records.values()].filter(({ isBlank }) => isBlank)
  const isBlank = (name: string) => blanks.some(({ cellId }) => cellId === name)
  const isBlankSlot = (name: string) =>
    blanks.some(({ slotNumber }) => name.endsWith(`-${slotNumber}`))
  const cellNames = state.sandboxFolders.filter((path) => !path.includes('/') && !isBlank(path))
  const folders = cellNames.filter((name) => !isPaused(name))
  const groups = unique(state.cgroups.map((path) => basename(path))).filter(
    (name) => name !== names.cgroup && !isBlank(name),
  )
  const processesByGroup = await Promise.all(groups.map((name) => processesOfCell(names, name)))
  const known = [...folders, ...blanks.map(({ cellId }) => cellId)]
  const isStray = (text: string) => !known.some((name) => text.includes(name))
  return {
    folders,
    pausedFolders: cellNames.filter(isPaused),
    snapshots: await readdir(join(dataDir, 'snapshots')).catch(() => []),
    groups,
    groupsWithProcesses: groups.filter((_, index) => (processesByGroup[index] ?? []).length > 0),
    loopDevices: namesBelow(`${dataDir}/cells/`, state.loopDevices),
    disks: namesBelow(`${runDir}/mounts/disk/`, state.ownMounts),
    roots: namesBelow(`${runDir}/mounts/rootfs/`, state.ownMounts),
    links: state.links.filter((name) => !isBlankSlot(name)).toSorted(),
    networkNamespaces: state.networkNamespaces.filter((name) => !isBlankSlot(name)).toSorted(),
    firewallElements: unique(
      [...state.rules.join('\n').matchAll(/"(at[0-9a-f]{5}-\d+)" \./g)].map(
        ([, name = '']) => name,
      ),
    ).filter((name) => !isBlankSlot(name)),
    strays: [
      ...state.runFiles.filter((path) => /^(state\/\w+|mounts\/\w+)\//.test(path)).filter(isStray),
      ...state.ownMounts.filter((path) => path.includes('/mounts/')).filter(isStray),
      ...state.processes
        .filter((title) => title.includes(dataDir) || title.includes(runDir))
        .filter(isStray),
      ...state.sandboxFolders.filter((path) => isForeign(path, records)),
    ],
  }
}

/** Numbers of paused sandboxes and snapshots. */
export interface StoredCounts {
  readonly paused?: number
  readonly snapshots?: number
}

/** Returns the expected traces for this many sandboxes, given the names of their folders and links. */
export function consistentTraces(
  traces: Traces,
  running: number,
  stored: StoredCounts = {},
): Traces {
  const expectCount = (names: readonly string[], count: number) =>
    names.length === count ? names : [`${count} of them`]
  const folders = expectCount(traces.folders, running)
  const slots = expectCount(traces.links, running)
  return {
    folders,
    pausedFolders: expectCount(traces.pausedFolders, stored.paused ?? 0),
    snapshots: expectCount(traces.snapshots, stored.snapshots ?? 0),
    groups: folders,
    groupsWithProcesses: folders,
    loopDevices: folders,
    disks: folders,
    roots: folders,
    links: slots,
    networkNamespaces: slots,
    firewallElements: slots,
    strays: [],
  }
}

/** Tests whether a path is in a cell's folder but not in its record. */
function isForeign(path: string, records: ReadonlyMap<string, CellOnDisk>): boolean {
  const [cellId = '', name, ...deeperParts] = path.split('/')
  if (name === undefined || deeperParts.length > 0) return false
  const record = records.get(cellId)
  const knownNames = ['cell.json', 'bundle', record?.disk, record?.memory && 'memory']
  return !knownNames.includes(name)
}

function namesBelow(folder: string, paths: readonly string[]): string[] {
  return unique(
    paths.filter((path) => path.startsWith(folder)).map((path) => firstBelow(folder, path)),
  )
}

function firstBelow(folder: string, path: string): string {
  return path.slice(folder.length).split('/')[0] ?? ''
}

function unique(items: readonly string[]): string[] {
  return [...new Set(items)].toSorted()
}
