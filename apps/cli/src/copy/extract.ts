/**
 * Writes an archive from a sandbox into a local folder. Threats: names and links are the attacker's. Nothing is written
 * outside of the folder: each path is checked part by part, symlinks are never followed and are created last, only if
 * they stay inside, and special files, owners and setuid bits are dropped. Size and number of entries are limited.
 */
import { constants, copyFile, lstat, mkdir, open, symlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { visibleName } from '../output/visible-text.ts'
import type { ReadEntry, TarSink } from '../tar/read.ts'

export interface ExtractOptions {
  readonly limitBytes: number
  readonly limitEntries: number
  /** Called for entries that are skipped. */
  warn(message: string): void
  onBytes?(total: number): void
}

export interface Extraction extends TarSink {
  /** Creates the symlinks. */
  finish(): Promise<void>
  /** Closes the file in work, after a failure. */
  close(): Promise<void>
}

/** `root` must be a folder that exists. */
export function extractInto(root: string, options: ExtractOptions): Extraction {
  const folder = openFolder(root)
  const links: { readonly parts: readonly string[]; readonly target: string }[] = []
  const seen = { bytes: 0, entries: 0 }
  let file: FileHandle | undefined
  const count = (bytes: number) => {
    seen.bytes += bytes
    if (seen.bytes > options.limitBytes) throw tooMuch(`${options.limitBytes} bytes`)
  }
  const closeFile = async () => {
    const closing = file
    file = undefined
    await closing?.close()
  }
  return {
    async begin(entry) {
      seen.entries += 1
      if (seen.entries > options.limitEntries) throw tooMuch(`${options.limitEntries} entries`)
      const parts = splitPath(entry.path)
      if (parts.length === 0 && entry.kind === 'directory') return
      if (parts.length === 0) throw unsafe(entry.path)
      await folder.makeFolders(parts.slice(0, -1))
      if (entry.kind === 'directory') await folder.makeFolders(parts, entry.mode)
      else if (entry.kind === 'file') file = await folder.createFile(parts, entry.mode)
      else if (entry.kind === 'hardlink') count(await folder.copyLinked(parts, entry))
      else if (entry.kind === 'symlink') links.push({ parts, target: entry.linkTarget })
      else options.warn(`skipped ${entry.path}: not a file, folder or link`)
    },
    async data(bytes) {
      count(bytes.length)
      await writeAll(file, bytes)
      options.onBytes?.(seen.bytes)
    },
    end: closeFile,
    close: closeFile,
    async finish() {
      for (const { parts, target } of links) {
        const refusal = await folder.createLink(parts, target)
        if (refusal) options.warn(`skipped the link ${parts.join('/')}: ${refusal}`)
      }
    },
  }
}

/** Creates entries below `root`, whose paths have no `..`, and never follows a symlink. */
function openFolder(root: string) {
  const folders = new Set([''])
  const files = new Set<string>()
  return {
    async makeFolders(parts: readonly string[], mode = 0o755): Promise<void> {
      for (let count = 1; count <= parts.length; count += 1) {
        const path = parts.slice(0, count).join('/')
        if (folders.has(path)) continue
        const place = join(root, path)
        const found = await find(place)
        if (found && !found.isDirectory()) throw inTheWay(place, 'not a folder')
        const wanted = count === parts.length ? mode & 0o777 : 0o755
        // The owner must be able to fill the folder.
        if (!found) await mkdir(place, { mode: wanted | 0o700 })
        folders.add(path)
      }
    },
    async createFile(parts: readonly string[], mode: number): Promise<FileHandle> {
      const place = join(root, ...parts)
      const found = await find(place)
      if (found && !found.isFile()) throw inTheWay(place, 'not a plain file')
      files.add(parts.join('/'))
      return open(place, toNewContent, (mode & 0o777) | 0o600)
    },
    /** Copies a file of the same archive, and returns its size. */
    async copyLinked(parts: readonly string[], { linkTarget }: ReadEntry): Promise<number> {
      const source = splitPath(linkTarget)
      if (!files.has(source.join('/'))) throw unsafe(linkTarget)
      const place = join(root, ...parts)
      if (await find(place)) throw inTheWay(place, 'it exists already')
      await copyFile(join(root, ...source), place, constants.COPYFILE_EXCL)
      files.add(parts.join('/'))
      return (await lstat(place)).size
    },
    /** Returns the reason if the link is not created. */
    async createLink(parts: readonly string[], target: string): Promise<string | undefined> {
      if (!staysInside(parts.length - 1, target)) return `${target} is outside of the folder`
      const place = join(root, ...parts)
      if (await find(place)) return 'something has its name already'
      await symlink(target, place)
      return undefined
    },
  }
}

const toNewContent =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW

const pathLimit = 4096

/** Splits a relative path. An archive of `.` has paths that begin with `./`. */
function splitPath(path: string): string[] {
  if (path.startsWith('/') || path.includes('\0') || path.length > pathLimit) throw unsafe(path)
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw unsafe(path)
  return parts
}

/**
 * Accepts targets that go up first and then down. A `..` after a name is refused: the name could itself be a link, and
 * `..` would then resolve from its target.
 */
export function staysInside(depth: number, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const firstName = parts.findIndex((part) => part !== '..')
  const ups = firstName === -1 ? parts.length : firstName
  return ups <= depth && !parts.slice(ups).includes('..')
}

async function find(path: string) {
  return lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
}

export async function writeAll(file: FileHandle | undefined, bytes: Uint8Array): Promise<void> {
  for (let written = 0; file && written < bytes.length;) {
    written += (await file.write(bytes, written)).bytesWritten
  }
}

function unsafe(path: string): Fault {
  const message = `The sandbox sent a path that leaves the target folder: ${visibleName(path.slice(0, 200))}`
  return new Fault('invalid', 'path_unsafe', message)
}

function inTheWay(place: string, reason: string): Fault {
  const message = `${visibleName(place)} is in the way: ${reason}. Move it, or choose another target.`
  return new Fault('conflict', 'target_in_the_way', message)
}

export function tooMuch(limit: string): Fault {
  const message = `The sandbox sent more than ${limit}. Raise --max-size if you expect so much.`
  return new Fault('exhausted', 'copy_too_large', message)
}
