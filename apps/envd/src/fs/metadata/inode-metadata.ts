/**
 * Metadata for file systems without extended attributes, such as gVisor's root. It is keyed by inode: it follows
 * renames by any program, and a new file under an old name has none.
 *
 * Inode numbers are reused at once, so each file has an inotify watch: its deletion is reported before its number
 * can come back. gVisor assigns new inode numbers when a sandbox boots from its disk; files are then found by their
 * last known path.
 */
import { lstatSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileIdentity, Metadata } from '../../domain/files/metadata-store.ts'
import { inotifyMask, openInotify } from '../../linux/inotify.ts'
import type { Inotify, InotifyEvent } from '../../linux/inotify.ts'
import type { Libc } from '../../linux/libc.ts'
import { readBootId } from './boot-id.ts'
import { metadataJournal } from './metadata-journal.ts'
import { createTrackedFiles } from './tracked-files.ts'
import type { TrackedFile } from './tracked-files.ts'

export interface InodeMetadata {
  read(path: string, identity: FileIdentity): Metadata | undefined
  /** `path` must be resolved. */
  put(path: string, identity: FileIdentity, metadata: Metadata): void
  forget(identity: FileIdentity): void
  handleMove(from: string, to: string): void
  flush(): Promise<void>
  close(): Promise<void>
}

export interface InodeMetadataOptions {
  readonly libc: () => Libc
  /** Folder on the disk of the sandbox, readable by root only. */
  readonly folder: string
  /** File on tmpfs, so that each boot from disk gets a new ID. */
  readonly bootIdFile: string
}

export async function openInodeMetadata(options: InodeMetadataOptions): Promise<InodeMetadata> {
  const files = createTrackedFiles()
  let inotify: Inotify | undefined
  const journal = metadataJournal({
    path: join(options.folder, 'metadata.jsonl'),
    current: () => ({
      bootId,
      records: files.all().map(({ key, path, metadata }) => ({ key, path, metadata })),
    }),
  })
  const bootId = await readBootId(options.bootIdFile)
  await restore()

  return {
    read(path, identity) {
      const key = keyOf(identity)
      if (!files.get(key)) return undefined
      drainEvents()
      const file = files.get(key)
      if (file && file.path !== path) updatePath(file, path)
      return file?.metadata
    },
    put(path, identity, metadata) {
      drainEvents()
      const key = keyOf(identity)
      if (!files.get(key)) files.requireRoom(path, metadata)
      const watch = watchFile(path)
      const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      if (watch === undefined || !found || keyOf(found) !== key) return // replaced in the meantime
      files.remove(key)
      files.add({ key, path, metadata, watch })
      journal.put({ key, path, metadata })
    },
    forget(identity) {
      const key = keyOf(identity)
      if (!files.get(key)) return
      drainEvents()
      const watch = files.get(key)?.watch
      if (watch === undefined) return
      forgetFile(key)
      inotify?.remove(watch)
    },
    handleMove(from, to) {
      for (const file of files.all()) {
        if (file.path === from || file.path.startsWith(`${from}/`)) {
          updatePath(file, to + file.path.slice(from.length))
        }
      }
    },
    flush: () => journal.flush(),
    async close() {
      inotify?.close()
      await journal.flush()
    },
  }

  async function restore(): Promise<void> {
    const loaded = await journal.load()
    for (const { key, path, metadata } of loaded.records) {
      const found = await lstat(path, { bigint: true }).catch(() => undefined)
      if (!found?.isFile() || files.isFull()) continue
      // Inode numbers are stable within a boot, so a different number means a different file.
      if (loaded.bootId === bootId && keyOf(found) !== key) continue
      const watch = watchFile(path)
      if (watch !== undefined) files.add({ key: keyOf(found), path, metadata, watch })
    }
    if (loaded.bootId !== bootId && files.all().length > 0) journal.rewriteAll()
  }

  function watchFile(path: string): number | undefined {
    inotify ??= openInotify(options.libc(), drainEvents)
    return inotify.add(path, inotifyMask.deleteSelf)
  }

  /** Processes all pending inotify events. */
  function drainEvents(): void {
    for (;;) {
      const events = inotify?.read() ?? []
      if (events.length === 0) return
      for (const event of events) handleEvent(event)
    }
  }

  function handleEvent({ watch, mask }: InotifyEvent): void {
    if (mask & inotifyMask.overflow) return dropReplacedFiles()
    const key = files.keyOfWatch(watch)
    if (key !== undefined) forgetFile(key)
  }

  /** Events were lost. Keep only files that are still at their last known path. */
  function dropReplacedFiles(): void {
    for (const { key, path } of files.all()) {
      const found = lstatSync(path, { bigint: true, throwIfNoEntry: false })
      if (!found || keyOf(found) !== key) forgetFile(key)
    }
  }

  function updatePath(file: TrackedFile, path: string): void {
    const { key, metadata } = file
    files.remove(key)
    files.add({ ...file, path })
    journal.put({ key, path, metadata })
  }

  function forgetFile(key: string): void {
    files.remove(key)
    journal.forget(key)
  }
}

function keyOf({ dev, ino }: FileIdentity): string {
  return `${dev}:${ino}`
}
