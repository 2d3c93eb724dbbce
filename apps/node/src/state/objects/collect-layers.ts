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

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A pass that begins later would not end before the pass of the next hour begins, which another node may do. */
const latestStartMs = hourMs / 2
/** Together far shorter than the rest of the hour, and than the margin of claims. */
const limitsMs = { pass: marginMs / 3, takingBack: 5 * minuteMs }
const folder = 'collections/'
const hourPattern = /^collections\/\d{4}-\d\d-\d\dT\d\d$/

export function createLayerCollection(ports: {
  readonly store: Pick<ObjectStore, 'create' | 'list' | 'delete' | 'nowMs'>
  readonly condemned: Pick<Condemned, 'collect'>
  readonly needed: NeededLayers
  /** Removals of things that nothing else refers to. */
  readonly sweeps: readonly ((signal: AbortSignal) => Promise<void>)[]
  onError(error: unknown, path: string): void
}): LayerCollection {
  const { store, condemned, needed, sweeps, onError } = ports
  let lastHour: string | undefined

  /** Whether this node does the pass of this hour. A crash leaves the pass to the next hour. */
  async function take(hour: string, signal: AbortSignal): Promise<boolean> {
    const isOurs = await store.create(`${folder}${hour}`, Buffer.from(hour), signal)
    lastHour = hour
    if (!isOurs) return false
    const taken = await store.list(folder, signal)
    await store.delete(
      taken.filter((key) => hourPattern.test(key) && key < `${folder}${hour}`),
      signal,
    )
    return true
  }

  async function collect(isNeeded: (path: string) => boolean, signal: AbortSignal): Promise<void> {
    const kinds = { 'layers/': isLayerPath, 'envd/': isEnvdPath }
    for (const [prefix, isOurs] of Object.entries(kinds)) {
      await condemned.collect({ prefix, isOurs, isNeeded, onError }, signal)
    }
  }

  /** A failure takes all condemnations back: without a removal, old ones would refuse uploads for ever. */
  async function findNeeded(limit: AbortSignal, signal: AbortSignal): Promise<ReadonlySet<string>> {
    try {
      return await needed.find(limit)
    } catch (error) {
      try {
        if (!signal.aborted) await collect(() => true, within(limitsMs.takingBack, signal))
      } catch (failure) {
        onError(failure, folder)
      }
      // Rethrow the original error: a failure to take condemnations back is secondary.
      throw error
    }
  }

  return {
    async run(signal) {
      const storeMs = await store.nowMs(signal)
      if (storeMs % hourMs >= latestStartMs) return
      const hour = new Date(storeMs).toISOString().slice(0, 13)
      if (hour === lastHour || !(await take(hour, signal))) return
      const removeUnneeded = async (limit: AbortSignal): Promise<void> => {
        const paths = await findNeeded(limit, signal)
        await collect((path) => paths.has(path), limit)
      }
      await runAll([removeUnneeded, ...sweeps], signal)
    },
  }
}

/** Each has a limit of its own. A manifest that cannot be read ends the collection, but no sweep. */
async function runAll(
  works: readonly ((limit: AbortSignal) => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  const errors: unknown[] = []
  for (const work of works) {
    await work(within(limitsMs.pass, signal)).catch((error: unknown) => errors.push(error))
  }
  if (errors.length > 0) throw errors[0]
}

function within(limitMs: number, signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
}
