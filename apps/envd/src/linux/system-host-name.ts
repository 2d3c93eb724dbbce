/**
 * Gives the system the name of the sandbox. Threats: whoever is root in the sandbox can put anything in the place of the
 * files. What is no plain file of ordinary size is left alone, and so is a folder that is not plainly on the disk: a file
 * system made by a program need never answer. All is done at once, not by the thread pool, whose round trips would cost
 * several times as much.
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

/** Best effort: never fails. `oldName` is one that may still stand somewhere. */
export type SetHostName = (name: string, oldName: string | undefined) => Promise<void>

export function createHostNameSetter(
  libc: () => Pick<Libc, 'setHostName'>,
  folder = '/etc',
): SetHostName {
  return async (name, oldName) => {
    if (!isHostName(name)) return
    const kernelName = hostname()
    // Where that is not possible or not permitted, it is done from outside.
    if (kernelName !== name) ignoreErrors(() => libc().setHostName(Buffer.from(name), name.length))
    if (!ignoreErrors(() => isPlainFolder(folder))) return
    // A disk that was copied without its memory knows the old name from here alone.
    const written = ignoreErrors(() => editFile(join(folder, 'hostname'), () => `${name}\n`))
    const oldNames = new Set([kernelName, oldName, written?.trim()])
    ignoreErrors(() =>
      editFile(join(folder, 'hosts'), (hosts) => renameHost(hosts, oldNames, name)),
    )
  }
}

function ignoreErrors<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** No link, and nothing mounted on it or on what is in it. */
function isPlainFolder(folder: string): boolean {
  if (!lstatSync(folder).isDirectory()) return false
  const mounts = readFileSync('/proc/self/mountinfo', 'latin1').split('\n')
  return !mounts.some((line) => `${line.split(' ', 5)[4]}/`.startsWith(`${folder}/`))
}

/** In its place, so that owner, mode and links stay. The text before, one letter for each byte. */
function editFile(path: string, change: (text: string) => string): string | undefined {
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  const fd = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  try {
    const found = fstatSync(fd)
    if (!found.isFile() || found.size > sizeLimitBytes) return undefined
    const bytes = Buffer.alloc(found.size)
    const before = bytes.toString('latin1', 0, readSync(fd, bytes))
    const after = change(before)
    // On a full disk the old text stays.
    if (after !== before && !write(fd, after)) write(fd, before)
    return before
  } finally {
    closeSync(fd)
  }
}

const sizeLimitBytes = 1024 * 1024

/** Whether there was room for it. */
function write(fd: number, text: string): boolean {
  try {
    if (writeSync(fd, text, 0, 'latin1') < text.length) return false
    ftruncateSync(fd, text.length)
    return true
  } catch {
    return false
  }
}
