/** What sandboxes leave on the host while they run, so that it can be counted, kind by kind. */
import { basename } from 'node:path'
import { hostState, processesOfCell } from './host-state.ts'
import type { Names } from './host-state.ts'

/** Each kind by the names it goes by there: one for every sandbox that runs, none for any other. */
export interface Traces {
  readonly folders: readonly string[]
  readonly groups: readonly string[]
  readonly groupsWithProcesses: readonly string[]
  readonly loopDevices: readonly string[]
  readonly disks: readonly string[]
  readonly roots: readonly string[]
  /** Network slots, by their links. */
  readonly links: readonly string[]
  readonly networkNamespaces: readonly string[]
  readonly firewallElements: readonly string[]
  /** Files of the runtime, mounts and processes that belong to none of those folders. */
  readonly strays: readonly string[]
}

export async function tracesOf(names: Names): Promise<Traces> {
  const state = await hostState(names, '')
  const { dataDir, runDir } = names
  const folders = state.sandboxFolders.filter((path) => !path.includes('/'))
  const groups = unique(state.cgroups.map((path) => basename(path))).filter(
    (name) => name !== names.cgroup,
  )
  const busy = await Promise.all(groups.map((name) => processesOfCell(names, name)))
  const isStray = (text: string) => !folders.some((name) => text.includes(name))
  return {
    folders,
    groups,
    groupsWithProcesses: groups.filter((_, index) => (busy[index] ?? []).length > 0),
    loopDevices: unique(state.loopDevices.map((file) => firstBelow(`${dataDir}/cells/`, file))),
    disks: namesBelow(`${runDir}/mounts/disk/`, state.ownMounts),
    roots: namesBelow(`${runDir}/mounts/rootfs/`, state.ownMounts),
    links: state.links.toSorted(),
    networkNamespaces: state.networkNamespaces.toSorted(),
    firewallElements: unique(
      [...state.rules.join('\n').matchAll(/"(at[0-9a-f]{5}-\d+)" \./g)].map(
        ([, name = '']) => name,
      ),
    ),
    strays: [
      ...state.runFiles.filter((path) => /^(state\/\w+|mounts\/\w+)\//.test(path)).filter(isStray),
      ...state.ownMounts.filter((path) => path.includes('/mounts/')).filter(isStray),
      ...state.processes
        .filter((title) => title.includes(dataDir) || title.includes(runDir))
        .filter(isStray),
    ],
  }
}

/** What they should be for so many running sandboxes, given the names of their folders and links. */
export function consistentTraces({ folders, links }: Traces, running: number): Traces {
  const cells = folders.length === running ? folders : [`${running} of them`]
  const slots = links.length === running ? links : [`${running} of them`]
  return {
    folders: cells,
    groups: cells,
    groupsWithProcesses: cells,
    loopDevices: cells,
    disks: cells,
    roots: cells,
    links: slots,
    networkNamespaces: slots,
    firewallElements: slots,
    strays: [],
  }
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
