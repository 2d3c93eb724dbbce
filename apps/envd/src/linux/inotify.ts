/** Binding of inotify(7). */
import { readSync } from 'node:fs'
import { Fault } from '@atoll/kit/fault'
import { readDescriptor } from './descriptor-reader.ts'
import { cString, errno } from './libc.ts'
import type { Libc } from './libc.ts'

export interface InotifyEvent {
  readonly watch: number
  readonly mask: number
  /** Links the two halves of a rename. */
  readonly cookie: number
  /** Name inside a watched folder as latin1, one character per byte; empty for the watched path itself. */
  readonly name: string
}

export interface Inotify {
  /**
   * Returns the watch descriptor, the same one for the same file. Returns undefined if the path cannot be watched.
   */
  add(path: string | Uint8Array, mask: number): number | undefined
  remove(watch: number): void
  /** Returns a batch of pending events; empty if there are none. */
  read(): readonly InotifyEvent[]
  close(): void
}

export const inotifyMask = {
  modify: 0x2,
  attributes: 0x4,
  movedFrom: 0x40,
  movedTo: 0x80,
  create: 0x100,
  delete: 0x200,
  deleteSelf: 0x400,
  moveSelf: 0x800,
  unmount: 0x2000,
  overflow: 0x4000,
  ignored: 0x8000,
  onlyFolder: 0x100_0000,
  isFolder: 0x4000_0000,
} as const

/** Calls `onReady` when events may be pending. */
export function openInotify(libc: Libc, onReady: () => void): Inotify {
  const fd = libc.inotifyInit(nonBlocking | closeOnExec)
  if (fd < 0) throw inotifyFault('inotify_init1', libc.errno())
  const buffer = Buffer.alloc(readBytes)
  let bufferedEvents: InotifyEvent[] = []
  let closed = false
  const reader = readDescriptor(fd, (bytes) => {
    // envd empties the kernel's queue even while the consumer is busy, so the kernel's limit does not apply and
    // this one must.
    if (bufferedEvents.length < bufferedEventLimit) bufferedEvents.push(...parseEvents(bytes))
    else bufferedEvents = [{ watch: -1, mask: inotifyMask.overflow, cookie: 0, name: '' }]
    onReady()
  })
  const timer = setInterval(onReady, fallbackMs).unref()

  return {
    add(path, mask) {
      if (closed) return undefined
      const watch = libc.inotifyAddWatch(fd, cString(path), mask)
      if (watch >= 0) return watch
      const number = libc.errno()
      if (unwatchable.has(number)) return undefined
      throw inotifyFault('inotify_add_watch', number)
    },
    remove(watch) {
      if (!closed) libc.inotifyRemoveWatch(fd, watch)
    },
    read() {
      if (closed) return []
      if (bufferedEvents.length > 0) return bufferedEvents.splice(0)
      try {
        return parseEvents(buffer.subarray(0, readSync(fd, buffer)))
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return []
        throw error
      }
    },
    close() {
      if (closed) return
      closed = true
      clearInterval(timer)
      reader.close()
    },
  }
}

export function parseEvents(bytes: Buffer): InotifyEvent[] {
  const events: InotifyEvent[] = []
  for (let at = 0; at + headerBytes <= bytes.length;) {
    const end = at + headerBytes + bytes.readUInt32LE(at + 12)
    const name = bytes.toString('latin1', at + headerBytes, end)
    events.push({
      watch: bytes.readInt32LE(at),
      mask: bytes.readUInt32LE(at + 4),
      cookie: bytes.readUInt32LE(at + 8),
      name: name.slice(0, Math.max(0, name.indexOf('\0'))),
    })
    at = end
  }
  return events
}

function inotifyFault(call: string, number: number): Fault {
  const why =
    number === errno.noSpace
      ? 'inotify watch limit reached, remove watches'
      : `system error ${number}`
  return new Fault('internal', 'watch_failed', `${call} failed: ${why}`)
}

/** Errors for a path that vanished, is too long, or is on a file system that denies access even to root. */
const unwatchable = new Set<number>([
  errno.notFound,
  errno.notFolder,
  errno.nameTooLong,
  errno.accessDenied,
])

const headerBytes = 16
const readBytes = 64 * 1024
const bufferedEventLimit = 65_536

/** Polling interval in case the event loop misses events, which may happen after a checkpoint and restore. */
const fallbackMs = 1000
const nonBlocking = 0o4000
const closeOnExec = 0o2000000
