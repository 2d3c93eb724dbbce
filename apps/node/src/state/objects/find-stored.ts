import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Bundles } from '@atoll/objects/bundles'
import type { PausedContent, Uploaded } from '../../domain/sandboxes/uploaded.ts'
import type { ObjectSandboxes } from './object-sandboxes.ts'
import type { ObjectSnapshots } from './object-snapshots.ts'
import type { ObjectTemplates } from './object-templates.ts'
import { createStoredLayers } from './stored-layers.ts'
import type { StoredNeeds } from './stored-layers.ts'

/**
 * Returns those of the contents that the object store has with all that a fetch needs, whichever node uploaded them. Reads
 * the store only. Throws a fault when the store does not answer, or has an object that cannot be read.
 */
export type FindStored = (wanted: Uploaded, signal: AbortSignal) => Promise<Uploaded>

/** The check of a content waits for several answers of the store, one after the other. */
const checksAtOnce = 16

export function createFindStored(ports: {
  readonly bundles: Pick<Bundles, 'findWhole'>
  readonly sandboxes: Pick<ObjectSandboxes, 'findNeeds'>
  readonly snapshots: Pick<ObjectSnapshots, 'findNeeds'>
  readonly templates: Pick<ObjectTemplates, 'findNeeds'>
}): FindStored {
  const { bundles, sandboxes, snapshots, templates } = ports
  return async ({ contents, snapshotIds, templateIds }, signal) => {
    const failed = new AbortController()
    const until = AbortSignal.any([signal, failed.signal])
    const gate = limitConcurrency(checksAtOnce)
    const areStored = createStoredLayers(bundles)
    const choose = async <T>(
      items: readonly T[],
      nameOf: (item: T) => string,
      findNeeds: (item: T, signal: AbortSignal) => Promise<StoredNeeds | undefined>,
    ): Promise<T[]> => {
      const isStored = async (item: T) => {
        try {
          const needs = await findNeeds(item, until)
          return needs !== undefined && (await areStored(needs, until))
        } catch (error) {
          throw named(nameOf(item), error)
        }
      }
      const stored = await Promise.all(items.map((item) => gate(() => isStored(item), until)))
      return items.filter((_, index) => stored[index])
    }
    try {
      const [foundContents, foundSnapshots, foundTemplates] = await Promise.all([
        choose(contents, nameOfPaused, sandboxes.findNeeds),
        choose(snapshotIds, (id) => `Snapshot ${id}`, snapshots.findNeeds),
        choose(templateIds, (id) => `Template ${id}`, templates.findNeeds),
      ])
      return { contents: foundContents, snapshotIds: foundSnapshots, templateIds: foundTemplates }
    } finally {
      // After a failure, the checks that have not begun ask nothing any more.
      failed.abort()
    }
  }
}

function nameOfPaused({ sandboxId }: PausedContent): string {
  return `Paused sandbox ${sandboxId}`
}

/** Adds the name of the content whose object cannot be read. A store that is down concerns all contents. */
function named(name: string, error: unknown): unknown {
  if (!(error instanceof Fault) || error.reason === 'objects_unavailable') return error
  return new Fault('unavailable', 'object_unreadable', `${name}: ${error.message}`, {
    cause: error,
  })
}
