/**
 * Gives the system the name of the sandbox. Threats: whoever is root in the sandbox can put anything in the place of the
 * files: what is no plain file of ordinary size is left alone, and what does not answer is not waited for.
 */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isHostName, renameHost } from '../domain/host-name.ts'
import type { Libc } from './libc.ts'

/** Best effort: never fails, and takes no longer than a moment. `oldName` is one that may still stand somewhere. */
export type NameSystem = (name: string, oldName: string | undefined) => Promise<void>

export function nameSystem(libc: () => Pick<Libc, 'setHostName'>, folder = '/etc'): NameSystem {
  return async (name, oldName) => {
    if (!isHostName(name)) return
    const kernelName = hostname()
    if (kernelName !== name) nameKernel(name)
    const oldNames = [kernelName, oldName ?? ''].filter((each) => each !== name)
    const late = new AbortController()
    await Promise.race([
      rewriteFiles(folder, name, oldNames).catch(() => {}),
      sleep(patienceMs, undefined, { signal: late.signal, ref: false }).catch(() => {}),
    ])
    late.abort()
  }

  /** Where that is not possible or not permitted, it is done from outside. */
  function nameKernel(name: string): void {
    try {
      libc().setHostName(Buffer.from(name), name.length)
    } catch {}
  }
}

const patienceMs = 500

async function rewriteFiles(
  folder: string,
  name: string,
  oldNames: readonly string[],
): Promise<void> {
  await using opened = new AsyncDisposableStack()
  const [ownFile, hostsFile] = await Promise.all(
    ['hostname', 'hosts'].map(async (file) => {
      const found = await openPlain(join(folder, file)).catch(() => undefined)
      return found && opened.use(found)
    }),
  )
  const [own, hosts] = await Promise.all([
    ownFile && contentOf(ownFile),
    hostsFile && contentOf(hostsFile),
  ])
  // A disk that was copied without its memory knows the old name from here alone.
  const written = own?.trim() ?? ''
  const known = new Set(written === name ? oldNames : [...oldNames, written])
  await Promise.all([
    own !== undefined && ownFile && replace(ownFile, own, `${name}\n`),
    hosts !== undefined && hostsFile && replace(hostsFile, hosts, renameHost(hosts, known, name)),
  ])
}

/** Neither a link is followed nor a pipe waited for. */
function openPlain(path: string): Promise<FileHandle> {
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants
  return open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
}

/** One letter for each byte. Undefined for what is no plain file, or too large. */
async function contentOf(file: FileHandle): Promise<string | undefined> {
  const found = await file.stat()
  if (!found.isFile() || found.size > sizeLimitBytes) return undefined
  const { buffer, bytesRead } = await file.read(Buffer.alloc(found.size), 0, found.size, 0)
  return buffer.toString('latin1', 0, bytesRead)
}

const sizeLimitBytes = 1024 * 1024

/** In its place, so that owner, mode and links stay. On a full disk the old text does. */
async function replace(file: FileHandle, before: string, after: string): Promise<void> {
  if (before === after) return
  try {
    await writeWhole(file, after)
  } catch {
    await writeWhole(file, before)
  }
}

async function writeWhole(file: FileHandle, text: string): Promise<void> {
  const { bytesWritten } = await file.write(text, 0, 'latin1')
  if (bytesWritten < text.length) throw new Error('the disk is full')
  await file.truncate(text.length)
}
