import { opendir } from 'node:fs/promises'
import type { ChangeListener } from '../../domain/watch/watch.ts'
import { inotifyMask } from '../../linux/inotify.ts'
import { toPath, toText } from '../files/byte-path.ts'
import type { BytePath } from '../files/byte-path.ts'
import { changeKinds } from './change-kinds.ts'
import type { FolderOwner, WatchedFolder, WatchedFolders } from './watched-folders.ts'

export interface Watcher extends FolderOwner<Watcher> {
  readonly recursive: boolean
  readonly listener: ChangeListener
  readonly folders: Map<BytePath, WatchedFolder<Watcher>>
}

/** Adds folder trees to a watch, and reports what was created in them before the watch was active. */
export interface FolderTrees {
  /** Watches a folder and its subfolders. Returns false if the folder does not exist. */
  watch(
    watcher: Watcher,
    relative: BytePath,
    options: { readonly report: boolean },
  ): Promise<boolean>
  scan(folder: WatchedFolder<Watcher>, isReporting: boolean): Promise<void>
  /** Forgets which entries were reported by scans; inotify has reported them by now. */
  clearReported(): void
}

export function createFolderTrees(
  folders: WatchedFolders<Watcher>,
  isActive: (watcher: Watcher) => boolean,
): FolderTrees {
  const scannedFolders: WatchedFolder<Watcher>[] = []
  return {
    watch,
    scan,
    clearReported() {
      for (const folder of scannedFolders.splice(0)) folder.reported.clear()
    },
  }

  async function watch(
    watcher: Watcher,
    relative: BytePath,
    options: { readonly report: boolean },
  ): Promise<boolean> {
    const added = isActive(watcher) ? folders.add(watcher, relative) : undefined
    if (added?.isNew) await scan(added.folder, options.report)
    return added !== undefined
  }

  async function scan(folder: WatchedFolder<Watcher>, isReporting: boolean): Promise<void> {
    const { owner, relative } = folder
    const path = relative === '' ? owner.root : `${owner.root}/${relative}`
    const reader = await opendir(toPath(path), readOptions).catch(() => undefined)
    if (!reader) return
    const isFirst = folder.scanned === 'nothing'
    let all = true
    if (isReporting) scannedFolders.push(folder)
    for await (const entry of reader) {
      if (!isActive(owner)) return
      const inner = relative === '' ? entry.name : `${relative}/${entry.name}`
      if (isReporting && isFirst) {
        folder.reported.add(entry.name)
        reportChanges(owner, toText(inner), inotifyMask.create)
      }
      if (entry.isDirectory()) all = (await watch(owner, inner, { report: isReporting })) && all
    }
    folder.scanned = all ? 'all' : 'part'
  }
}

export function reportChanges({ listener }: Watcher, name: string, mask: number): void {
  for (const kind of changeKinds(mask)) listener.changed({ name, kind })
}

const readOptions = { encoding: 'latin1', bufferSize: 256 } as const
