import { ownerOf } from '../domain/lease.ts'
import type { LeaseHolder } from '../domain/lease.ts'

/** The api processes that share the store, as their leases were read last. This one always counts as alive. */
export interface LiveApis {
  count(): number
  /** Calls `listener` when another one was found. */
  onJoin(listener: () => void): void
  /**
   * Whether this process does the work for a key, such as the ID of a node, that one process is enough for. For some
   * seconds after a change two processes may think so, or none.
   */
  isMine(key: string): boolean
  /** Notes whether this process reaches a node. If not, its work is left to a process that does. */
  noteReach(nodeId: string, isReached: boolean): void
}

interface LiveApisOfLease extends LiveApis {
  note(holders: readonly LeaseHolder[]): void
  /** Nodes that this process does not reach. */
  readonly unreached: ReadonlySet<string>
}

export function createLiveApis(ownId: string): LiveApisOfLease {
  const unreached = new Set<string>()
  const listeners: (() => void)[] = []
  let others: readonly LeaseHolder[] = []
  return {
    count: () => others.length + 1,
    onJoin: (listener) => void listeners.push(listener),
    isMine(key) {
      if (others.length === 0) return true
      return ownerOf(key, [{ processId: ownId, unreached }, ...others]) === ownId
    },
    noteReach(nodeId, isReached) {
      if (isReached) unreached.delete(nodeId)
      else unreached.add(nodeId)
    },
    note(holders) {
      const known = new Set(others.map(({ processId }) => processId))
      others = holders.filter(({ processId }) => processId !== ownId)
      if (others.some(({ processId }) => !known.has(processId)))
        for (const listener of listeners) listener()
    },
    unreached,
  }
}
