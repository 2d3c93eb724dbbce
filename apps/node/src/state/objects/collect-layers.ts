import { marginMs } from '@atoll/objects/condemned'
import type { Condemned } from '@atoll/objects/condemned'
import type { ObjectStore } from '@atoll/objects/object-store'
import type { NeededLayers } from './needed-layers.ts'
import { isEnvdPath } from './object-envds.ts'
import { isLayerPath } from './object-layers.ts'

/** Removes layers and builds of envd from the object store that nothing in it needs, and what `sweeps` remove. */
export interface LayerCollection {
  /** One pass, or none: the nodes of a fleet share one pass per hour. */
  run(signal: AbortSignal): Promise<void>
}

/** Ends well within the margin of claims. */
const passLimitMs = marginMs / 2
const folder = 'collections/'

export function createLayerCollection(ports: {
  readonly store: Pick<ObjectStore, 'create' | 'list' | 'delete'>
  readonly condemned: Pick<Condemned, 'collect'>
  readonly needed: NeededLayers
  /** Removals of things that nothing else refers to. */
  readonly sweeps: readonly ((signal: AbortSignal) => Promise<void>)[]
  nowMs(): number
  onError(error: unknown, path: string): void
}): LayerCollection {
  const { store, condemned, needed, sweeps, nowMs, onError } = ports
  let lastHour: string | undefined

  /** Whether this node does the pass of this hour. A crash leaves the pass to the next hour. */
  async function take(hour: string, signal: AbortSignal): Promise<boolean> {
    const isOurs = await store.create(`${folder}${hour}`, Buffer.from(hour), signal)
    lastHour = hour
    if (!isOurs) return false
    const taken = await store.list(folder, signal)
    await store.delete(
      taken.filter((key) => key < `${folder}${hour}`),
      signal,
    )
    return true
  }

  async function collect(limit: AbortSignal): Promise<void> {
    const paths = await needed.find(limit)
    // Objects with other names belong to others.
    const isNeeded = (path: string) => paths.has(path) || !(isLayerPath(path) || isEnvdPath(path))
    for (const prefix of ['layers/', 'envd/']) {
      await condemned.collect({ prefix, isNeeded, onError }, limit)
    }
  }

  return {
    async run(signal) {
      const hour = new Date(nowMs()).toISOString().slice(0, 13)
      if (hour === lastHour || !(await take(hour, signal))) return
      // A manifest that cannot be read ends the collection, but no sweep.
      const errors: unknown[] = []
      for (const work of [collect, ...sweeps]) {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(passLimitMs)])
        await work(limit).catch((error: unknown) => errors.push(error))
      }
      if (errors.length > 0) throw errors[0]
    },
  }
}
