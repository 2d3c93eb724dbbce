import { constants, lstatSync, openSync, opendirSync, readlinkSync } from 'node:fs'
import type { Stats } from 'node:fs'
import koffi from 'koffi'

/**
 * File operations relative to an open directory, like `openat`. The name is the last part of a path whose other parts
 * are `/proc/self/fd/N`, so the kernel follows no link that a sandbox made.
 */

const libc = koffi.load('libc.so.6')
const fgetxattr = libc.func(
  'long fgetxattr(int fd, const char *name, _Out_ uint8_t *value, size_t size)',
)

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants

/** Returns undefined if the directory has no such entry, or if it is not a directory. */
export function openDirectory(parent: number, name: Buffer): number | undefined {
  return unlessAbsent(() => openSync(pathOf(parent, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
}

/** Opens a file without waiting: a named pipe would block until it has a writer. */
export function openFile(parent: number, name: Buffer): number | undefined {
  return unlessAbsent(() => openSync(pathOf(parent, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
}

export function statOf(parent: number, name: Buffer): Stats | undefined {
  return unlessAbsent(() => lstatSync(pathOf(parent, name)))
}

export function linkTargetOf(parent: number, name: Buffer): Buffer | undefined {
  return unlessAbsent(() => readlinkSync(pathOf(parent, name), { encoding: 'buffer' }))
}

/** Bound for the names of all directories that a request reads. */
export interface NameBudget {
  left: number
  isTimeUp(): boolean
}

/** Names after which the time is checked. A slow machine reads at least this many of each directory. */
const namesPerTimeCheck = 1000

/** Returns names until the budget is used up, sorted by their bytes. */
export function sortedNames(
  directory: number,
  budget: NameBudget,
): { readonly names: readonly Buffer[]; readonly isComplete: boolean } {
  // latin1 keeps every byte of a name.
  using opened = opendirSync(`/proc/self/fd/${directory}`, { encoding: 'latin1' })
  const names: Buffer[] = []
  for (;;) {
    const entry = opened.readSync()
    if (!entry) break
    const isCheck = names.length > 0 && names.length % namesPerTimeCheck === 0
    if (budget.left <= 0 || (isCheck && budget.isTimeUp())) {
      return { names: names.toSorted(Buffer.compare), isComplete: false }
    }
    budget.left -= 1
    names.push(Buffer.from(entry.name, 'latin1'))
  }
  return { names: names.toSorted(Buffer.compare), isComplete: true }
}

/** Whether overlayfs hides the same directory of the layers below. */
export function isOpaque(directory: number): boolean {
  return hasAttribute(directory, 'trusted.overlay.opaque', 'y') || isRenamed(directory)
}

/** A renamed directory shows the content of another one below. Kernels do this only with `redirect_dir=on`. */
function isRenamed(directory: number): boolean {
  return fgetxattr(directory, 'trusted.overlay.redirect', Buffer.alloc(1), 0) > 0
}

function hasAttribute(directory: number, name: string, value: string): boolean {
  const read = Buffer.alloc(8)
  const length = Number(fgetxattr(directory, name, read, read.length))
  return length > 0 && read.toString('latin1', 0, length) === value
}

/** Whether the entry marks a deletion: overlayfs uses a character device with number 0. */
export function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0
}

function pathOf(parent: number, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${parent}/`), name])
}

function unlessAbsent<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && absentCodes.has(String(error.code))) {
      return undefined
    }
    throw error
  }
}

/** EACCES and ENXIO: devices and sockets. */
const absentCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EACCES', 'EINVAL'])
