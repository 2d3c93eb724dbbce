import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { Fault } from '@atoll/kit/fault'
import { run } from '@atoll/kit/run'
import { newAttempt } from '@atoll/objects/bundles'
import type { Bundles } from '@atoll/objects/bundles'
import type { Manifest } from '@atoll/objects/manifest'
import { z } from 'zod'
import { packFolder, unpackFolder } from '../../linux/files/archive.ts'
import { listNames } from '../record-file.ts'

/** Moves folders between this node and the object store. */
export interface Transfers {
  /** Uploads folders as one bundle. The folders must not change meanwhile. */
  upload(bundle: FolderBundle, signal: AbortSignal): ReturnType<Bundles['write']>
  /** Throws a fault when the object store has no such bundle. */
  find(path: string, signal?: AbortSignal): Promise<Manifest>
  /** Unpacks a part into the new folder `dir`. Its content is checked and on disk on return. */
  download(manifest: Manifest, name: string, dir: string, signal?: AbortSignal): Promise<void>
  /** Does the same with a part that is one file. */
  downloadFile(manifest: Manifest, name: string, path: string, signal?: AbortSignal): Promise<void>
  /** Bytes that all downloads of this process have received so far. */
  receivedBytes(): number
  /** Whether an upload of a bundle below this prefix is under way, or was interrupted and not cleaned up yet. */
  isPending(prefix: string): boolean
  /**
   * Removes what uploads left that a crash or an outage interrupted. Calls `onStored` with the path of each upload that
   * was complete nevertheless.
   */
  cleanUp(signal: AbortSignal, onStored?: (path: string) => Promise<void>): Promise<void>
}

export interface FolderBundle {
  readonly path: string
  readonly facts: unknown
  /** Folders by the name of the part. */
  readonly folders: Readonly<Record<string, string>>
  /** Files by the name of the part. They are stored as they are. */
  readonly files?: Readonly<Record<string, string>>
  readonly isWanted?: () => boolean | Promise<boolean>
  /** Called once the store has the bundle, before the upload counts as finished. */
  readonly onStored?: (outcome: 'written' | 'present') => Promise<void>
}

const Attempt = z.object({ path: z.string() })
const downloadAttempts = 3
const measureLimitMs = 300_000

interface TransferPorts {
  readonly bundles: Bundles
  readonly reserveSpace: (bytes: number, purpose: string) => Disposable
}

/** `dir`: folder for the notes about uploads. */
export async function openTransfers(
  parts: TransferPorts & { readonly dir: string },
): Promise<Transfers> {
  const { dir, bundles } = parts
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const underway = new Set<string>()
  const received = { bytes: 0 }
  const note = (attempt: string) => join(dir, `${attempt}.json`)
  const pending = await readNotes(dir)
  const forget = async (attempt: string) => {
    await rm(note(attempt), { force: true })
    pending.delete(attempt)
  }

  return {
    async upload({ path, facts, folders, files = {}, onStored, ...checks }, signal) {
      const attempt = newAttempt()
      const newParts = await openParts(folders, files)
      underway.add(attempt)
      pending.set(attempt, path)
      try {
        // Written first: the next start knows which objects an interrupted upload may have left.
        await writeFileAtomic(note(attempt), JSON.stringify({ path }))
        const bundle = { path, attempt, facts, parts: newParts, ...checks }
        const outcome = await bundles.write(bundle, signal)
        if (outcome !== 'unwanted') await onStored?.(outcome)
        await forget(attempt)
        return outcome
      } finally {
        underway.delete(attempt)
      }
    },

    find: async (path, signal) => (await bundles.find(path, signal)) ?? fail(notInStore(path)),

    download: (manifest, name, path, signal) =>
      downloadWithRetries(parts, manifest, { name, path, signal, received, ...asFolder }),

    downloadFile: (manifest, name, path, signal) =>
      downloadWithRetries(parts, manifest, { name, path, signal, received, ...asFile }),

    receivedBytes: () => received.bytes,

    isPending: (prefix) => [...pending.values()].some((path) => path.startsWith(prefix)),

    async cleanUp(signal, onStored) {
      const failures: unknown[] = []
      for (const [attempt, path] of pending) {
        if (underway.has(attempt)) continue
        try {
          if (await bundles.discard(path, attempt, signal)) await onStored?.(path)
          await forget(attempt)
        } catch (error) {
          failures.push(error) // the others do not wait for this one
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}

function openParts(
  folders: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
) {
  return Promise.all([
    ...Object.entries(folders).map(packedPart),
    ...Object.entries(files).map(filePart),
  ])
}

async function packedPart([name, folder]: readonly [string, string]) {
  return { name, unpackedBytes: await diskBytes(folder), open: () => packFolder(folder) }
}

async function filePart([name, path]: readonly [string, string]) {
  const { size } = await stat(path)
  return { name, unpackedBytes: size, open: () => createReadStream(path) }
}

const noteEnding = '.json'

/** Returns the paths of uploads by their attempt. Notes that cannot be read stay for the next start. */
async function readNotes(dir: string): Promise<Map<string, string>> {
  const notes = new Map<string, string>()
  for (const name of await listNames(dir)) {
    const file = join(dir, name)
    const isNote = name.endsWith(noteEnding)
    // A crash interrupted the write of the note, so its upload had not begun.
    if (!isNote) await rm(file, { force: true })
    const path = isNote ? await readPath(file) : undefined
    if (path !== undefined) notes.set(name.slice(0, -noteEnding.length), path)
  }
  return notes
}

interface Download extends Target {
  readonly name: string
  readonly path: string
  readonly signal: AbortSignal | undefined
  readonly received: { bytes: number }
}

interface Target {
  /** Fails if there is something with this path. */
  create(path: string): Promise<unknown>
  /** The content is on disk on return. */
  fill(content: AsyncIterable<Buffer>, path: string): Promise<unknown>
}

const asFolder: Target = {
  create: (path) => mkdir(path, { mode: 0o755 }),
  async fill(content, path) {
    await unpackFolder(content, path)
    await run('sync', ['--file-system', path], { timeoutMs: measureLimitMs })
  },
}

const asFile: Target = {
  create: (path) => writeFile(path, '', { flag: 'wx', mode: 0o600 }),
  fill: (content, path) => pipeline(content, createWriteStream(path, { flush: true })),
}

async function downloadWithRetries(
  ports: TransferPorts,
  manifest: Manifest,
  work: Download,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await downloadOnce(ports, manifest, work)
    } catch (error) {
      const isLasting = error instanceof Fault && error.reason !== 'objects_unavailable'
      if (isLasting || attempt === downloadAttempts || work.signal?.aborted) throw error
    }
  }
}

async function downloadOnce(
  { bundles, reserveSpace }: TransferPorts,
  manifest: Manifest,
  work: Download,
): Promise<void> {
  const part = manifest.parts.find(({ name }) => name === work.name)
  if (!part) throw notInStore(`${manifest.path} (${work.name})`)
  using _room = reserveSpace(part.unpackedBytes, 'fetching it from the object store')
  await work.create(work.path)
  try {
    const fill = (content: AsyncIterable<Buffer>) =>
      work.fill(count(content, work.received), work.path)
    await bundles.read(part, fill, work.signal)
  } catch (error) {
    await removeFolder(work.path)
    throw error
  }
}

async function* count(
  content: AsyncIterable<Buffer>,
  received: { bytes: number },
): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    received.bytes += chunk.length
    yield chunk
  }
}

async function readPath(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '')
  try {
    return Attempt.parse(JSON.parse(text)).path
  } catch {
    return undefined
  }
}

/** Removes a folder with untrusted files, without leaving its file system. */
export async function removeFolder(dir: string): Promise<void> {
  await run('rm', ['--recursive', '--force', '--one-file-system', dir], {
    timeoutMs: measureLimitMs,
  })
}

async function diskBytes(dir: string): Promise<number> {
  const text = await run('du', ['--summarize', '--block-size=1', dir], {
    timeoutMs: measureLimitMs,
  })
  return Number(text.split('\t')[0])
}

function fail(fault: Fault): never {
  throw fault
}

function notInStore(path: string): Fault {
  return new Fault(
    'not_found',
    'object_missing',
    `The object store has no ${path}: it was never uploaded, or was deleted`,
  )
}
