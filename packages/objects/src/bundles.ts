/**
 * Bundles of objects: a manifest and its parts, below one path. The manifest is written last, and never replaced: a bundle
 * exists, complete and unchangeable, once its manifest does. Each upload uses keys of its own (`PATH/ATTEMPT.PART`), so
 * an upload that is repeated or late cannot touch the parts of a bundle that exists.
 */
import { createHash } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import { randomLabel } from '@atoll/kit/id'
import { damagedObject, newContentKey, openFrames, sealFrames } from './frames.ts'
import { manifestKey, maxManifestBytes, openManifest, sealManifest } from './manifest.ts'
import type { Manifest, ObjectKeys, Part } from './manifest.ts'
import type { ObjectStore } from './object-store.ts'

export interface Bundles {
  /** Returns undefined if there is no such bundle. Throws when its manifest cannot be read. */
  find(path: string, signal?: AbortSignal): Promise<Manifest | undefined>
  /** Does what `find` does, but returns undefined also when the size of a part is not that of the manifest. */
  findWhole(path: string, signal?: AbortSignal): Promise<Manifest | undefined>
  /**
   * Uploads the parts and then the manifest. `present`: the bundle exists already with all parts, and stays as it is.
   * `unwanted`: `isWanted` returned false before the manifest was written. A failure leaves no bundle.
   */
  write(bundle: NewBundle, signal?: AbortSignal): Promise<'written' | 'present' | 'unwanted'>
  /**
   * Passes the content of a part to `use`, and returns once all of it proved to be what the manifest promises. The
   * result of `use` must not be used before.
   */
  read<T>(
    part: Part,
    use: (content: AsyncIterable<Buffer>) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>
  /** Removes what an interrupted upload left. Returns true, and keeps the bundle, if this upload completed it. */
  discard(path: string, attempt: string, signal?: AbortSignal): Promise<boolean>
  /** Lists the paths of the bundles below a prefix that ends with a slash, also of unfinished ones. */
  listPaths(prefix: string, signal?: AbortSignal): Promise<string[]>
  /** Removes a bundle. Succeeds if there is none. Throws, and removes nothing, when its manifest cannot be read. */
  remove(path: string, signal?: AbortSignal): Promise<void>
}

export interface NewBundle {
  readonly path: string
  /** Unique for each upload. */
  readonly attempt: string
  readonly facts: unknown
  readonly parts: readonly NewPart[]
  /** Checked before the manifest is written. Absent: wanted. */
  readonly isWanted?: () => boolean | Promise<boolean>
}

export interface NewPart {
  readonly name: string
  readonly unpackedBytes: number
  open(): AsyncIterable<Uint8Array>
}

/** A store that hangs must not hold up the stop of a node. What is left is discarded after its next start. */
const discardLimitMs = 30_000

export function newAttempt(): string {
  return randomLabel(12)
}

export function createBundles(store: ObjectStore, keys: ObjectKeys): Bundles {
  async function find(path: string, signal?: AbortSignal): Promise<Manifest | undefined> {
    const body = await store.read(manifestKey(path), maxManifestBytes, signal)
    return body && openManifest(body, path, keys)
  }

  async function discard(path: string, attempt: string, signal?: AbortSignal): Promise<boolean> {
    const existing = await find(path, signal)
    if (existing?.attempt === attempt) return true
    const own = `${path}/${attempt}.`
    await store.abandonUploads(own, signal)
    await store.delete(await store.list(own, signal), signal)
    return false
  }

  /** The answer to our own request may have been lost and the request repeated, so a refusal may be about ourselves. */
  async function commit(manifest: Manifest, signal?: AbortSignal): Promise<boolean> {
    const { path, attempt } = manifest
    const body = sealManifest(manifest, keys)
    if (await store.create(manifestKey(path), body, signal)) return true
    return (await find(path, signal))?.attempt === attempt
  }

  return {
    ...{ find, discard },
    findWhole: async (path, signal) => ifWhole(store, await find(path, signal), signal),

    async write(bundle, signal) {
      const { path, attempt, facts, isWanted = () => true } = bundle
      const existing = await find(path, signal)
      if (existing && (await isComplete(store, existing, signal))) return 'present'
      let outcome: 'written' | 'present' | 'unwanted' | undefined
      try {
        const parts = await uploadParts(store, bundle, signal)
        if (!(await isWanted())) return (outcome = 'unwanted')
        // Only now: until its replacement is there, an operator may still restore the lost part of the old one.
        if (existing) await store.delete([manifestKey(path)], signal)
        const isOurs = await commit({ path, attempt, facts, parts }, signal)
        return (outcome = isOurs ? 'written' : 'present')
      } finally {
        // `discard` finds out whether a failed request has written the manifest.
        if (outcome !== 'written') {
          await discard(path, attempt, AbortSignal.timeout(discardLimitMs)).catch(() => {})
        }
      }
    },

    read: (part, use, signal) => readPart(store, part, use, signal),

    listPaths: async (prefix, signal) => foldersOf(await store.list(prefix, signal)),

    async remove(path, signal) {
      const manifest = await find(path, signal)
      // The manifest goes first: without it, no node starts to read the parts.
      if (manifest) await store.delete([manifestKey(path)], signal)
      await store.abandonUploads(`${path}/`, signal)
      await store.delete(await store.list(`${path}/`, signal), signal)
    },
  }
}

function foldersOf(keys: readonly string[]): string[] {
  return [...new Set(keys.map((key) => key.slice(0, key.lastIndexOf('/'))))]
}

async function ifWhole(
  store: Pick<ObjectStore, 'size'>,
  manifest: Manifest | undefined,
  signal?: AbortSignal,
): Promise<Manifest | undefined> {
  for (const { key, sizeBytes } of manifest?.parts ?? []) {
    if ((await store.size(key, signal)) !== sizeBytes) return undefined
  }
  return manifest
}

/** Whether no part is gone. A manifest that was written late may name parts that were discarded before. */
async function isComplete(
  store: Pick<ObjectStore, 'size'>,
  { parts }: Manifest,
  signal?: AbortSignal,
): Promise<boolean> {
  for (const { key } of parts) {
    if ((await store.size(key, signal)) === undefined) return false
  }
  return true
}

async function readPart<T>(
  store: ObjectStore,
  part: Part,
  use: (content: AsyncIterable<Buffer>) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const sealed = await store.open(part.key, signal)
  if (!sealed) throw missingPart(part)
  const seen = { bytes: 0, hash: createHash('sha256') }
  const secret = Buffer.from(part.secret, 'hex')
  const content = openFrames(observe(sealed, seen, part.sizeBytes), secret, part.key)
  const result = await use(content)
  const isWhole = seen.bytes === part.sizeBytes && seen.hash.digest('hex') === part.sha256
  if (!isWhole) throw damagedObject()
  return result
}

async function uploadParts(
  store: ObjectStore,
  bundle: NewBundle,
  signal?: AbortSignal,
): Promise<Part[]> {
  const parts: Part[] = []
  for (const part of bundle.parts) {
    const key = `${bundle.path}/${bundle.attempt}.${part.name}`
    parts.push(await uploadPart(store, { key, part, signal }))
  }
  return parts
}

async function uploadPart(
  store: ObjectStore,
  work: {
    readonly key: string
    readonly part: NewPart
    readonly signal: AbortSignal | undefined
  },
): Promise<Part> {
  const { key, part, signal } = work
  const secret = newContentKey()
  const seen = { bytes: 0, hash: createHash('sha256') }
  await store.upload(key, observe(sealFrames(part.open(), secret, key), seen), signal)
  const stored = await store.size(key, signal)
  if (stored !== seen.bytes) {
    throw new Fault(
      'unavailable',
      'objects_unavailable',
      `The object store has ${stored ?? 'nothing'} of the ${seen.bytes} bytes that were uploaded; try again later`,
    )
  }
  const { name, unpackedBytes } = part
  const sha256 = seen.hash.digest('hex')
  return { name, key, sizeBytes: seen.bytes, sha256, secret: secret.toString('hex'), unpackedBytes }
}

interface Seen {
  bytes: number
  readonly hash: ReturnType<typeof createHash>
}

/** Counts and hashes the bytes that pass. Fails at the first byte beyond `maxBytes`. */
async function* observe(
  source: AsyncIterable<Uint8Array>,
  seen: Seen,
  maxBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    seen.bytes += chunk.length
    if (seen.bytes > maxBytes) throw damagedObject()
    seen.hash.update(chunk)
    yield chunk
  }
}

function missingPart({ key }: Part): Fault {
  return new Fault(
    'unavailable',
    'object_missing',
    'A part of the content is not in the object store. Ask an operator to restore it.',
    { cause: new Error(`no object ${key}`) },
  )
}
