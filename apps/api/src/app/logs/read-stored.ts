import type { LogEntry, LogQuery } from '../../domain/log.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'

/** Reads a log from the object store, for a node that does not answer. Undefined: no node can read it now. */
export type ReadStored = (
  nodeId: string,
  sandboxId: string,
  query: LogQuery,
) => Promise<LogEntry[] | undefined>

const timeoutMs = 10_000
/** A store that is down fails on every node. */
const nodesTried = 2

export function createReadStored({
  fleet,
  placing,
  random = Math.random,
}: {
  readonly fleet: Pick<Fleet, 'ids' | 'member'>
  readonly placing: Pick<Placing, 'conditionOf'>
  readonly random?: () => number
}): ReadStored {
  /** Chooses by chance: no node does this work for all. */
  const chooseNodes = (except: string) => {
    const able = fleet.ids().filter((id) => {
      const hasObjects = fleet.member(id).facts()?.hasObjects ?? false
      return id !== except && hasObjects && placing.conditionOf(id) !== 'gone'
    })
    const start = Math.floor(random() * able.length)
    return [...able.slice(start), ...able.slice(0, start)].slice(0, nodesTried)
  }
  return async (nodeId, sandboxId, query) => {
    for (const id of chooseNodes(nodeId)) {
      try {
        const signal = AbortSignal.timeout(timeoutMs)
        return await fleet.member(id).logs.readStored(sandboxId, query, signal)
      } catch {
        // The next node may reach the store.
      }
    }
    return undefined
  }
}
