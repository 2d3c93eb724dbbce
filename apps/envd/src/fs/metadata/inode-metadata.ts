/**
 * Metadata for file systems without extended attributes, such as gVisor's root. It is keyed by inode: it follows
 * renames by any program, and a new file under an old name has none.
 *
 * Inode numbers are reused at once, so each file has an inotify watch: its deletion is reported before its number
 * can come back. gVisor assigns new inode numbers when a sandbox boots from its disk; files are then found by their
 * last known path.
 */
import { lstatSync } from 'node:fs'
import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import type { FileIdentity, Metadata } from '../../domain/files/metadata-store.ts'
import { inotifyMask, openInotify } from '../../linux/inotify.ts'
import type { Inotify, InotifyEvent } from '../../linux/inotify.ts'
import { randomName } from '../../linux/kernel-random.ts'
import type { Libc } from '../../linux/libc.ts'
import { metadataJournal } from './metadata-journal.ts'
import type { MetadataRecord } from './metadata-journal.ts'

export interface InodeMetadata {
  read(path: string, identity: FileIdentity): Metadata | undefined
  /** `path` must be resolved. */
  put(path: string, identity: FileIdentity, metadata: Metadata): void
  forget(identity: FileIdentity): void
  moved(from: string, to: string): void
  flush(): Promise<void>
  close(): Promise<void>
}

interface TrackedFile extends MetadataRecord {
  readonly watch: number
}

export interface InodeMetadataOptions {
  readonly libc: () => Libc
  /** Folder on the disk of the sandbox, readable by root only. */
  readonly folder: string
  /** File on tmpfs, so that each boot from disk gets a new ID. */
  readonly bootIdFile: string
}

export async function openInodeMetadata(options: InodeMetadataOptions): Promise<InodeMetadata> {
  const files = new Map<string, TrackedFile>()
  const byWatch = new Map<number, string>()
  let sizeBytes = 0
  let inotify: Inotify | undefined
  const path = join(options.folder, 'metadata.jsonl')
  const journal = metadataJournal({
    path,
    current: () => ({ bootId, records: [...files.values()].map(toRecord) }),
  })
  const bootId = await readBootId(options.bootIdFile)
  await restore()

  return {
    read(at, identity) {
      const key = keyOf(identity)
      if (!files.has(key)) return undefined
      drainEvents()
      const found = files.get(key)
      if (found && found.path !== at) updatePath(found, at)
      return found?.metadata
    },
    put(at, identity, metadata) {
      drainEvents()
      const key = keyOf(identity)
      const size = sizeOf(at, metadata)
      if (!files.has(key)) checkLimits(files.size + 1, sizeBytes + size)
      const watch = watchFile(at)
      const found = lstatSync(at, { bigint: true, throwIfNoEntry: false })
      if (watch === undefined || !found || keyOf(found) !== key) return // replaced in the meantime
      untrack(key)
      track({ key, path: at, metadata, watch })
      journal.put({ key, path: at, metadata })
    },
    forget(identity) {
      if (!files.has(keyOf(identity))) return
      drainEvents()
      const watch = files.get(keyOf(identity))?.watch
      if (watch === undefined) return
      forgetFile(keyOf(identity))
      inotify?.remove(watch)
    },
    moved(from, to) {
      for (const kept of [...files.values()]) {
        if (kept.path === from || kept.path.startsWith(`${from}/`)) {
          updatePath(kept, to + kept.path.slice(from.length))
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
    const kept = await journal.load()
    for (const { key, path: at, metadata } of kept.records) {
      const found = await lstat(at, { bigint: true }).catch(() => undefined)
      if (!found?.isFile() || files.size >= countLimit) continue
      // Inode numbers are stable within a boot, so a different number means a different file.
      if (kept.bootId === bootId && keyOf(found) !== key) continue
      const watch = watchFile(at)
      if (watch !== undefined) track({ key: keyOf(found), path: at, metadata, watch })
    }
    if (kept.bootId !== bootId && files.size > 0) journal.rewriteAll()
  }

  function watchFile(at: string): number | undefined {
    inotify ??= openInotify(options.libc(), drainEvents)
    return inotify.add(at, inotifyMask.deleteSelf)
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
    const key = byWatch.get(watch)
    if (key !== undefined) forgetFile(key)
  }

  /** Events were lost. Keep only files that are still at their last known path. */
  function dropReplacedFiles(): void {
    for (const { key, path: at } of files.values()) {
      const found = lstatSync(at, { bigint: true, throwIfNoEntry: false })
      if (!found || keyOf(found) !== key) forgetFile(key)
    }
  }

  function updatePath(kept: TrackedFile, at: string): void {
    const seen = { ...kept, path: at }
    untrack(kept.key)
    track(seen)
    journal.put({ key: seen.key, path: at, metadata: seen.metadata })
  }

  function forgetFile(key: string): void {
    untrack(key)
    journal.forget(key)
  }

  function track(kept: TrackedFile): void {
    files.set(kept.key, kept)
    byWatch.set(kept.watch, kept.key)
    sizeBytes += sizeOf(kept.path, kept.metadata)
  }

  function untrack(key: string): void {
    const kept = files.get(key)
    if (!kept) return
    files.delete(key)
    byWatch.delete(kept.watch)
    sizeBytes -= sizeOf(kept.path, kept.metadata)
  }
}

function toRecord({ key, path, metadata }: TrackedFile): MetadataRecord {
  return { key, path, metadata }
}

/** Returns the ID of this boot. The file is on tmpfs and vanishes with the sandbox's memory. */
async function readBootId(file: string): Promise<string> {
  const found = await readFile(file, 'utf8').catch(() => '')
  if (found !== '') return found
  const bootId = randomName()
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, bootId, { mode: 0o600 })
  return bootId
}

function keyOf({ dev, ino }: FileIdentity): string {
  return `${dev}:${ino}`
}

function sizeOf(path: string, metadata: Metadata): number {
  return path.length + JSON.stringify(metadata).length
}

function checkLimits(count: number, sizeBytes: number): void {
  if (count <= countLimit && sizeBytes <= sizeLimitBytes) return
  const text = `Metadata limit reached (${countLimit} files, ${sizeLimitBytes} bytes). Delete files with metadata.`
  throw new Fault('exhausted', 'too_much_metadata', text)
}

/** Each file takes memory and an inotify watch. */
const countLimit = 20_000
const sizeLimitBytes = 16 * 1024 * 1024
