/**
 * Removal of bundles that nothing needs any more, while any node may begin to need them again.
 *
 * A bundle that nothing needs is condemned: it gets an object `condemned` beside its manifest. The bundle is removed if it
 * is still condemned and unneeded after a grace time. A node that is about to write a manifest that needs a bundle claims
 * the bundle first, which takes the condemnation back. A claim shortly before the end of the grace time is refused, since a
 * removal may have begun. So a claimed bundle stays for the whole grace time, which is longer than any upload. Only the
 * clock of the store counts: those of the nodes may be wrong.
 */
import { Fault } from '@atoll/kit/fault'
import type { Bundles } from './bundles.ts'
import { manifestKey } from './manifest.ts'
import type { ObjectStore } from './object-store.ts'

export const graceMs = 7 * 24 * 60 * 60 * 1000
/** Bounds a removal that has begun, together with the difference between the clocks of two gateways of the store. */
export const marginMs = 60 * 60 * 1000

export interface Condemned {
  /**
   * Returns whether the object store has the bundle; if so, it stays for the grace time. Throws an `object_expiring` fault
   * while it is being removed, or soon will be: try again later.
   */
  claim(path: string, signal?: AbortSignal): Promise<boolean>
  /**
   * One pass over the bundles below a prefix that ends with a slash. Condemns bundles that are not needed, and removes them
   * when their grace time has passed. Reports and keeps a bundle that cannot be removed. Two passes must not overlap.
   */
  collect(work: Collection, signal: AbortSignal): Promise<void>
}

export interface Collection {
  readonly prefix: string
  /** Whether a path is that of a bundle of Atoll. The pass leaves other objects alone. */
  isOurs(path: string): boolean
  isNeeded(path: string): boolean
  onError(error: unknown, path: string): void
}

interface Ports {
  readonly store: Pick<ObjectStore, 'abandonUploads' | 'ageMs' | 'create' | 'list' | 'delete'>
  readonly bundles: Pick<Bundles, 'find'>
}

export function createCondemned(ports: Ports): Condemned {
  const { store } = ports

  async function claim(path: string, signal?: AbortSignal): Promise<boolean> {
    const keys = await store.list(`${path}/`, signal)
    const key = condemnedKey(path)
    if (!keys.includes(key)) return keys.includes(manifestKey(path))
    const ageMs = await store.ageMs(key, signal)
    // The condemnation has gone since the list was read, perhaps with the bundle.
    if (ageMs === undefined) return claim(path, signal)
    if (ageMs >= graceMs - marginMs) throw beingRemoved(path)
    await store.delete([key], signal)
    return keys.includes(manifestKey(path))
  }

  return {
    claim,
    async collect({ prefix, isOurs, isNeeded, onError }, signal) {
      for (const [path, keys] of groupByFolder(await store.list(prefix, signal))) {
        if (!isOurs(path)) continue
        signal.throwIfAborted()
        try {
          await judge(ports, { path, keys, isNeeded: isNeeded(path) }, signal)
        } catch (error) {
          onError(error, path)
        }
      }
    },
  }
}

async function judge(
  { store, bundles }: Ports,
  bundle: { readonly path: string; readonly keys: readonly string[]; readonly isNeeded: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { path, keys, isNeeded } = bundle
  const key = condemnedKey(path)
  const isCondemned = keys.includes(key)
  if (isNeeded) return isCondemned ? store.delete([key], signal) : undefined
  if (!isCondemned) {
    await store.create(key, Buffer.from('nothing needs this bundle'), signal)
    return
  }
  // Read now: a node may have claimed the bundle since the list was read.
  const isOver = async () => ((await store.ageMs(key, signal)) ?? 0) >= graceMs
  if (!(await isOver())) return
  const manifest = await bundles.find(path, signal)
  // Again, after the manifest: another node that removed the bundle since then may have let a third one upload it anew.
  if (!(await isOver())) return
  await sweep({ store, bundles }, { path, keys, attempt: manifest?.attempt }, signal)
}

/** Spares what an upload adds meanwhile: the manifest of another attempt, and all that has another key. */
async function sweep(
  { store, bundles }: Ports,
  found: {
    readonly path: string
    readonly keys: readonly string[]
    readonly attempt: string | undefined
  },
  signal: AbortSignal,
): Promise<void> {
  const { path, keys, attempt } = found
  const [own, condemnation] = [manifestKey(path), condemnedKey(path)]
  await store.abandonUploads(`${path}/`, signal)
  // The manifest goes first: without it, no node starts to read the parts.
  const manifest = await bundles.find(path, signal)
  if (manifest && manifest.attempt === attempt) await store.delete([own], signal)
  const parts = keys.filter((key) => key !== own && key !== condemnation)
  await store.delete(parts, signal)
  // The condemnation goes last, since it refuses claims, and so uploads, until all else has gone.
  await store.delete([condemnation], signal)
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
