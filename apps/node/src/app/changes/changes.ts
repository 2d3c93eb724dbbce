import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import { splitPath } from '../../domain/sandboxes/changes.ts'
import type { ChangedContent, ChangeList, ListQuery } from '../../domain/sandboxes/changes.ts'
import type { InspectedCell, Sandboxes } from '../lifecycle/sandboxes.ts'

/** Files that sandboxes changed, running or paused. Wakes no sandbox. */
export interface Changes {
  list(sandboxId: string, query: ListQuery, signal: AbortSignal): Promise<ChangeList>
  /** Returns undefined if the sandbox has not changed this entry. */
  read(sandboxId: string, path: Buffer, signal: AbortSignal): Promise<ChangedContent | undefined>
}

export interface ChangePorts {
  list(cell: InspectedCell, query: ListQuery, signal: AbortSignal): Promise<ChangeList>
  read(
    cell: InspectedCell,
    query: { readonly path: Buffer; readonly maxBytes: number },
    signal: AbortSignal,
  ): Promise<ChangedContent | undefined>
}

/** Bytes of each side of a changed file. */
const maxContentBytes = 1024 ** 2
const maxEntries = 1000
const inspectionsAtOnce = 4
/** Inspections that wait, each of another sandbox. */
const maxWaiting = 64

export function createChanges(parts: {
  readonly ports: ChangePorts
  readonly sandboxes: Pick<Sandboxes, 'inspect'>
}): Changes {
  const { ports, sandboxes } = parts
  const limit = limitConcurrency(inspectionsAtOnce)
  let begun = 0

  async function inspect<T>(
    sandboxId: string,
    task: (cell: InspectedCell, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    // Counted when the sandbox is free: one that is busy must not keep others waiting.
    return sandboxes.inspect(
      sandboxId,
      async (cell, ended) => {
        if (begun >= inspectionsAtOnce + maxWaiting) throw busy()
        begun += 1
        try {
          return await limit(() => task(cell, ended), ended)
        } finally {
          begun -= 1
        }
      },
      signal,
    )
  }

  return {
    async list(sandboxId, query, signal) {
      const above = splitPath(query.path)
      const after = query.after && splitPath(query.after)
      if (after && !above.every((name, index) => after[index]?.equals(name))) throw foreignPage()
      const bounded = { ...query, limit: Math.min(Math.max(query.limit, 1), maxEntries) }
      return inspect(sandboxId, (cell, ended) => ports.list(cell, bounded, ended), signal)
    },

    async read(sandboxId, path, signal) {
      splitPath(path)
      const query = { path, maxBytes: maxContentBytes }
      return inspect(sandboxId, (cell, ended) => ports.read(cell, query, ended), signal)
    },
  }
}

function busy(): Fault {
  return new Fault(
    'unavailable',
    'inspections_busy',
    'The node already inspects many sandboxes; try again later',
  )
}

function foreignPage(): Fault {
  return new Fault('invalid', 'bad_page', 'The token belongs to a list of another path')
}
