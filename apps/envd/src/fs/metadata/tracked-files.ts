import { Fault } from '@atoll/kit/fault'
import type { Metadata } from '../../domain/files/metadata-store.ts'
import type { MetadataRecord } from './metadata-journal.ts'

export interface TrackedFile extends MetadataRecord {
  /** inotify watch of the file. */
  readonly watch: number
}

/** Files with inode metadata, by inode and by inotify watch, up to a limit. */
export interface TrackedFiles {
  get(key: string): TrackedFile | undefined
  keyOfWatch(watch: number): string | undefined
  all(): readonly TrackedFile[]
  isFull(): boolean
  /** Throws an `exhausted` fault if a new file with this metadata would exceed a limit. */
  requireRoom(path: string, metadata: Metadata): void
  add(file: TrackedFile): void
  remove(key: string): void
}

export function createTrackedFiles(): TrackedFiles {
  const files = new Map<string, TrackedFile>()
  const keysByWatch = new Map<number, string>()
  let totalBytes = 0
  return {
    get: (key) => files.get(key),
    keyOfWatch: (watch) => keysByWatch.get(watch),
    all: () => [...files.values()],
    isFull: () => files.size >= countLimit,
    requireRoom(path, metadata) {
      if (files.size < countLimit && totalBytes + sizeOf(path, metadata) <= sizeLimitBytes) return
      const text = `Metadata limit reached (${countLimit} files, ${sizeLimitBytes} bytes). Delete files with metadata.`
      throw new Fault('exhausted', 'too_much_metadata', text)
    },
    add(file) {
      files.set(file.key, file)
      keysByWatch.set(file.watch, file.key)
      totalBytes += sizeOf(file.path, file.metadata)
    },
    remove(key) {
      const file = files.get(key)
      if (!file) return
      files.delete(key)
      keysByWatch.delete(file.watch)
      totalBytes -= sizeOf(file.path, file.metadata)
    },
  }
}

function sizeOf(path: string, metadata: Metadata): number {
  return path.length + JSON.stringify(metadata).length
}

/** Each file takes memory and an inotify watch. */
const countLimit = 20_000
const sizeLimitBytes = 16 * 1024 * 1024
