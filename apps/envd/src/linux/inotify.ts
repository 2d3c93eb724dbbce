/** inotify(7): what happens to files and folders, as the kernel tells it. */
import { readSync } from 'node:fs'
import { Fault } from '@atoll/kit/fault'
import { readDescriptor } from './descriptor-reader.ts'
import { cString, errno } from './libc.ts'
import type { Libc } from './libc.ts'

export interface InotifyEvent {
  readonly watch: number
  readonly mask: number
  /** Ties the two halves of a rename together. */
  readonly cookie: number
  /** The bytes of a name inside a watched folder, one letter for each; empty for what was watched itself. */
  readonly name: string
}

export interface Inotify {
  /** The number of the watch; the same for the same file. Undefined when there is nothing there that can be watched. */
  add(path: string | Uint8Array, mask: number): number | undefined
  remove(watch: number): void
  /** What happened until now, some of it when it is much; empty when there is nothing left. */
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

/** `onReady` is called when there may be something to read. */
export function openInotify(libc: Libc, onReady: () => void): Inotify {
  const fd = libc.inotifyInit(nonBlocking | closeOnExec)
  if (fd < 0) throw inotifyFault('inotify_init1', libc.errno())
  const buffer = Buffer.alloc(readBytes)
  let bufferedEvents: InotifyEvent[] = []
  let closed = false
  const reader = readDescriptor(fd, (bytes) => {
    // When the reader is busy, the kernel's own limit holds no more, since it is emptied meanwhile.
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
    number === errno.noSpace ? 'the system allows no more watches' : `error ${number} of the system`
  return new Fault('internal', 'watch_failed', `Watching is not possible: ${why} (${call})`)
}

/** Gone meanwhile, too deep for a path, or on a file system that does not let even us in. */
const unwatchable = new Set<number>([
  errno.notFound,
  errno.notFolder,
  errno.nameTooLong,
  errno.accessDenied,
])

const headerBytes = 16
const readBytes = 64 * 1024
const bufferedEventLimit = 65_536

/** For a bell that does not ring, as it may be after the whole sandbox was saved and restored. */
const fallbackMs = 1000
const nonBlocking = 0o4000
const closeOnExec = 0o2000000
