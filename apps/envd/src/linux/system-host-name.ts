/**
 * Sets the host name of the system. Threats: root in the sandbox can replace the files by anything. Only regular
 * files of normal size are edited, and only if no file system is mounted over the folder: a FUSE file system could
 * hang forever. Calls are synchronous, because thread pool round trips would cost several times as much.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { isHostName, renameHost } from '../domain/sandbox/host-name.ts'
import type { Libc } from './libc.ts'

/** Best effort, never rejects. `oldName` is a previous name that the files may still contain. */
export type SetHostName = (name: string, oldName: string | undefined) => Promise<void>

export function createHostNameSetter(
  libc: () => Pick<Libc, 'setHostName'>,
  folder = '/etc',
): SetHostName {
  return async (name, oldName) => {
    if (!isHostName(name)) return
    const kernelName = hostname()
    // Where this is impossible or not permitted, the node sets the name from outside.
    if (kernelName !== name) ignoreErrors(() => libc().setHostName(Buffer.from(name), name.length))
    if (!ignoreErrors(() => isPlainFolder(folder))) return
    // Only this file has the old name if the disk was copied without its memory.
    const written = ignoreErrors(() => editFile(join(folder, 'hostname'), () => `${name}\n`))
    const oldNames = new Set([kernelName, oldName, written?.trim()])
    ignoreErrors(() =>
      editFile(join(folder, 'hosts'), (hosts) => renameHost(hosts, oldNames, name)),
    )
  }
}

function ignoreErrors<T>(action: () => T): T | undefined {
  try {
    return action()
  } catch {
    return undefined
  }
}

/** Whether the folder is not a symlink and nothing is mounted on it or below. */
function isPlainFolder(folder: string): boolean {
  if (!lstatSync(folder).isDirectory()) return false
  const mounts = readFileSync('/proc/self/mountinfo', 'latin1').split('\n')
  return !mounts.some((line) => `${line.split(' ', 5)[4]}/`.startsWith(`${folder}/`))
}

/** Edits the file in place, so that owner, mode and hard links stay. Returns the previous text as latin1. */
function editFile(path: string, change: (text: string) => string): string | undefined {
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  const fd = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  try {
    const found = fstatSync(fd)
    if (!found.isFile() || found.size > sizeLimitBytes) return undefined
    const bytes = Buffer.alloc(found.size)
    const before = bytes.toString('latin1', 0, readSync(fd, bytes))
    const after = change(before)
    // Restores the old text if the disk is full.
    if (after !== before && !write(fd, after)) write(fd, before)
    return before
  } finally {
    closeSync(fd)
  }
}

const sizeLimitBytes = 1024 * 1024

/** Returns whether the write succeeded. */
function write(fd: number, text: string): boolean {
  try {
    if (writeSync(fd, text, 0, 'latin1') < text.length) return false
    ftruncateSync(fd, text.length)
    return true
  } catch {
    return false
  }
}
