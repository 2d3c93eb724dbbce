import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Fault } from '@atoll/kit/fault'
import { randomHex } from '@atoll/kit/id'
import type { Bundles } from '@atoll/objects/bundles'
import { readFacts } from '@atoll/objects/manifest'
import type { ObjectStore } from '@atoll/objects/object-store'
import { z } from 'zod'
import type { BuildFile } from '../build-files.ts'
import type { LinkedFolders } from './linked-folders.ts'
import type { Marks } from './marks.ts'
import type { Transfers } from './transfers.ts'

/**
 * Files for build steps in the object store: a bundle `build-files/<owner>/<hash>` each, with a small object for each hour
 * in which the files were used.
 */
export interface ObjectBuildFiles {
  isUploaded(file: BuildFile): boolean
  /** Replaces other content of the same name. */
  upload(file: BuildFile, signal: AbortSignal): Promise<void>
  /** Notes the last use of uploaded files in the store, at most once per hour. */
  noteUse(file: BuildFile, signal: AbortSignal): Promise<void>
  /** Returns whether the store has the files. If so, they stay there for another day. */
  claim(name: BuildFileName, signal: AbortSignal): Promise<boolean>
  /** Passes a copy of the files to `keep`, which moves it away. Does nothing if the store does not have them. */
  fetch(name: BuildFileName, keep: (path: string) => Promise<BuildFile>): Promise<void>
  /** Forgets notes about files that this node does not have any more. */
  keepNotesOf(files: readonly BuildFile[]): Promise<void>
  /**
   * Removes files that no node has used for a day, by the clock of the store. Keeps and reports bundles that cannot be
   * read.
   */
  sweep(signal: AbortSignal): Promise<void>
}

export type BuildFileName = Pick<BuildFile, 'ownerId' | 'hash'>

interface Ports {
  readonly store: Pick<ObjectStore, 'create' | 'list' | 'nowMs' | 'ageMs'>
  readonly bundles: Pick<Bundles, 'find' | 'remove'>
  readonly transfers: Transfers
  readonly marks: Marks
  readonly links: LinkedFolders
  /** Folder for downloads, on the file system of the data directory. What an earlier process left in it is removed. */
  readonly workDir: string
  /** Time of this node, which only names uses. */
  nowMs(): number
  onError(error: unknown, path: string): void
}

const Facts = z.object({ sha256: z.string() })

const markKind = 'build-files'
const part = 'archive'
const hourMs = 60 * 60 * 1000
/** A day, and the hour of the last use. */
const keptMs = 25 * hourMs
const keyPattern = /^(build-files\/[a-z0-9-]{1,64}\/[0-9a-f]{64})\/(.+)$/
const usePattern = /^used\.(\d+)$/

export async function openObjectBuildFiles(ports: Ports): Promise<ObjectBuildFiles> {
  const { bundles, marks, workDir, nowMs } = ports
  await rm(workDir, { recursive: true, force: true })
  await mkdir(workDir, { recursive: true, mode: 0o700 })
  const uses = createUses(ports.store)

  return {
    isUploaded: (file) => marks.has(markKind, markOf(file)),

    upload: (file, signal) => upload(ports, uses, file, signal),

    async noteUse(file, signal) {
      const path = pathOf(file)
      if (uses.isKnown(path, file.usedAtMs) || file.usedAtMs < nowMs() - keptMs) return
      if (await bundles.find(path, signal)) return uses.note(path, file.usedAtMs, signal)
      // The store has lost the files, or has removed them during an outage of this node: they are uploaded again.
      uses.forget((known) => known === path)
      await marks.removeWhere(markKind, (mark) => mark === markOf(file))
    },

    async claim(name, signal) {
      const path = pathOf(name)
      if (!(await bundles.find(path, signal))) return false
      await uses.note(path, nowMs(), signal)
      return true
    },

    fetch: (name, keep) => fetch(ports, name, keep),

    async keepNotesOf(files) {
      const kept = new Set(files.map(markOf))
      await marks.removeWhere(markKind, (mark) => !kept.has(mark))
      const paths = new Set(files.map(pathOf))
      uses.forget((path) => !paths.has(path))
    },

    sweep: (signal) => sweep(ports, signal),
  }
}

/** Uses that the store knows of. */
function createUses(store: Pick<ObjectStore, 'create'>) {
  const hours = new Map<string, number>()
  // Not "at least": after a clock that was fast, later uses must be noted too.
  const isKnown = (path: string, usedAtMs: number) => hours.get(path) === hourOf(usedAtMs)
  return {
    isKnown,
    async note(path: string, usedAtMs: number, signal: AbortSignal): Promise<void> {
      if (isKnown(path, usedAtMs)) return
      await store.create(useKey(path, usedAtMs), Buffer.from(path), signal)
      hours.set(path, hourOf(usedAtMs))
    },
    forget(isUnwanted: (path: string) => boolean): void {
      for (const path of hours.keys()) if (isUnwanted(path)) hours.delete(path)
    },
  }
}

async function upload(
  { bundles, transfers, marks, links, nowMs }: Ports,
  uses: ReturnType<typeof createUses>,
  file: BuildFile,
  signal: AbortSignal,
): Promise<void> {
  const path = pathOf(file)
  await using linked = await links.linkFile(file.path)
  if (!linked) return
  const facts = { sha256: await hashFile(linked.file) }
  const existing = await bundles.find(path, signal)
  if (existing && readFacts(existing, Facts).sha256 !== facts.sha256) {
    await bundles.remove(path, signal)
    uses.forget((known) => known === path)
  }
  // A sweep removes bundles without a use, so the use comes first.
  await uses.note(path, nowMs(), signal)
  const files = { [part]: linked.file }
  await transfers.upload({ path, facts, folders: {}, files }, signal)
  await marks.add(markKind, markOf(file))
}

async function fetch(
  { transfers, marks, workDir }: Ports,
  name: BuildFileName,
  keep: (path: string) => Promise<BuildFile>,
): Promise<void> {
  const work = join(workDir, randomHex(8))
  try {
    const manifest = await transfers.find(pathOf(name))
    await transfers.downloadFile(manifest, part, work)
    const fetched = await keep(work)
    await marks.add(markKind, markOf(fetched))
  } catch (error) {
    const isMissing = error instanceof Fault && error.kind === 'not_found'
    if (!isMissing) throw error
  } finally {
    await rm(work, { force: true })
  }
}

async function sweep({ store, bundles, onError }: Ports, signal: AbortSignal): Promise<void> {
  const storeMs = await store.nowMs(signal)
  const uses = await listUses(store, signal)
  for (const [path, hours] of uses) {
    try {
      if (hours.length === 0) await store.create(useKey(path, storeMs), Buffer.from(path), signal)
      else if (!(await isInUse(store, path, { hours, storeMs }, signal))) {
        await bundles.remove(path, signal)
      }
    } catch (error) {
      if (signal.aborted) throw error
      onError(error, path)
    }
  }
}

/** Returns the hours of the uses of each bundle, by the clocks of the nodes that noted them. */
async function listUses(
  store: Pick<ObjectStore, 'list'>,
  signal: AbortSignal,
): Promise<Map<string, number[]>> {
  const uses = new Map<string, number[]>()
  for (const key of await store.list('build-files/', signal)) {
    const [, path, name = ''] = keyPattern.exec(key) ?? []
    // Objects with other names belong to others.
    if (path === undefined) continue
    const hours = uses.get(path) ?? []
    uses.set(path, hours)
    const hour = usePattern.exec(name)?.[1]
    if (hour !== undefined) hours.push(Number(hour))
  }
  return uses
}

/**
 * Whether a node has used the files in the last day. The clock of a node that notes a use may be wrong, so only the hour in
 * which the store was asked to note it counts; names that agree with the store's clock spare the question.
 */
async function isInUse(
  store: Pick<ObjectStore, 'ageMs'>,
  path: string,
  { hours, storeMs }: { readonly hours: readonly number[]; readonly storeMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  const now = hourOf(storeMs)
  if (hours.some((hour) => hour <= now && storeMs - hour * hourMs <= keptMs)) return true
  for (const hour of hours) {
    const age = await store.ageMs(useKey(path, hour * hourMs), signal)
    if (age !== undefined && age <= keptMs) return true
  }
  return false
}

function useKey(path: string, usedAtMs: number): string {
  return `${path}/used.${hourOf(usedAtMs)}`
}

function hourOf(ms: number): number {
  return Math.floor(ms / hourMs)
}

/** The file itself, not its name: an archive that replaces another one gets a note of its own. */
function markOf({ ownerId, hash, inode }: BuildFile): string {
  return `${ownerId}-${hash}.${inode}`
}

function pathOf({ ownerId, hash }: BuildFileName): string {
  return `build-files/${ownerId}/${hash}`
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
