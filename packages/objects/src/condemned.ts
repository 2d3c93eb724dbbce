/**
 * Removal of bundles that nothing needs any more, while any node may begin to need them again.
 *
 * A bundle that nothing needs is condemned: an object beside its manifest says since when. It is removed if it is still
 * condemned and unneeded after a grace time. A node that is about to write a manifest that needs a bundle claims the
 * bundle first, which takes the condemnation back. A claim shortly before the end of the grace time is refused, since a
 * removal may have begun. So a claimed bundle stays for the whole grace time, which is longer than any upload.
 */
import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import type { Bundles } from './bundles.ts'
import { manifestKey } from './manifest.ts'
import type { ObjectStore } from './object-store.ts'

export const graceMs = 7 * 24 * 60 * 60 * 1000
/** Bounds a removal that has begun, together with the difference between the clocks of two nodes. */
export const marginMs = 60 * 60 * 1000

export interface Condemned {
  /**
   * Returns whether the object store has the bundle; if so, it stays for the grace time. Throws an `object_expiring` fault
   * while it is being removed, or soon will be: try again later.
   */
  claim(path: string, signal?: AbortSignal): Promise<boolean>
  /**
   * One pass over the bundles below a prefix that ends with a slash. Condemns bundles that are not needed, and removes them
   * when their grace time has passed. Reports and keeps a bundle that cannot be removed.
   */
  collect(work: Collection, signal: AbortSignal): Promise<void>
}

export interface Collection {
  readonly prefix: string
  isNeeded(path: string): boolean
  onError(error: unknown, path: string): void
}

const Stored = z.object({ sinceMs: z.number() })
const maxBytes = 1_000

interface Ports {
  readonly store: Pick<ObjectStore, 'create' | 'read' | 'list' | 'delete'>
  readonly bundles: Pick<Bundles, 'remove'>
  nowMs(): number
}

export function createCondemned(ports: Ports): Condemned {
  const { store, nowMs } = ports

  async function claim(path: string, signal?: AbortSignal): Promise<boolean> {
    const keys = await store.list(`${path}/`, signal)
    const key = condemnedKey(path)
    if (!keys.includes(key)) return keys.includes(manifestKey(path))
    const sinceMs = await readTime(store, path, signal)
    // The condemnation has gone since the list was read, perhaps with the bundle.
    if (sinceMs === undefined) return claim(path, signal)
    if (nowMs() >= sinceMs + graceMs - marginMs) throw beingRemoved(path)
    await store.delete([key], signal)
    return keys.includes(manifestKey(path))
  }

  return {
    claim,
    async collect({ prefix, isNeeded, onError }, signal) {
      for (const [path, keys] of groupByFolder(await store.list(prefix, signal))) {
        signal.throwIfAborted()
        const isCondemned = keys.includes(condemnedKey(path))
        try {
          await judge(ports, { path, isCondemned, isNeeded: isNeeded(path) }, signal)
        } catch (error) {
          onError(error, path)
        }
      }
    },
  }
}

async function judge(
  { store, bundles, nowMs }: Ports,
  bundle: { readonly path: string; readonly isCondemned: boolean; readonly isNeeded: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { path, isCondemned, isNeeded } = bundle
  const key = condemnedKey(path)
  if (isNeeded) return isCondemned ? store.delete([key], signal) : undefined
  if (!isCondemned) {
    await store.create(key, Buffer.from(JSON.stringify({ sinceMs: nowMs() })), signal)
    return
  }
  // Read now: a node may have claimed the bundle since the list was read.
  const sinceMs = await readTime(store, path, signal)
  if (sinceMs === undefined) return
  // Without a readable time the grace time begins anew, in the next pass.
  if (Number.isNaN(sinceMs)) return store.delete([key], signal)
  if (nowMs() >= sinceMs + graceMs) await bundles.remove(path, signal)
}

/** Returns undefined if the bundle is not condemned, and `NaN` if the time cannot be read. */
async function readTime(
  store: Pick<ObjectStore, 'read'>,
  path: string,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const body = await store.read(condemnedKey(path), maxBytes, signal)
  if (!body) return undefined
  try {
    return Stored.parse(JSON.parse(body.toString('utf8'))).sinceMs
  } catch {
    return Number.NaN
  }
}

function groupByFolder(keys: readonly string[]): Map<string, string[]> {
  return Map.groupBy(keys, (key) => key.slice(0, key.lastIndexOf('/')))
}

function condemnedKey(path: string): string {
  return `${path}/condemned`
}

function beingRemoved(path: string): Fault {
  return new Fault(
    'conflict',
    'object_expiring',
    `The object store is about to remove ${path}, which nothing needed for days: the upload is tried again after that`,
  )
}
