import type { LeaseHolder } from '../domain/lease.ts'

/** The api processes that share the store, as their leases were read last. This one always counts as alive. */
export interface LiveApis {
  count(): number
  /** Calls `listener` when another one was found. */
  onJoin(listener: () => void): void
}

export function createLiveApis(
  ownId: string,
): LiveApis & { note(holders: readonly LeaseHolder[]): void } {
  let ids = new Set([ownId])
  const listeners: (() => void)[] = []
  return {
    count: () => ids.size,
    onJoin: (listener) => void listeners.push(listener),
    note(holders) {
      const found = new Set([ownId, ...holders.map(({ processId }) => processId)])
      const isJoined = !found.isSubsetOf(ids)
      ids = found
      if (isJoined) for (const listener of listeners) listener()
    },
  }
}
