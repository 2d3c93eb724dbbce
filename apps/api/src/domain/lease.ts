import { Fault } from '@atoll/kit/fault'
import { chooseFor } from './rendezvous.ts'

/** Leases show which server processes on a store are alive. */
export interface LeaseStore {
  renew(holder: LeaseHolder, expiresAt: Date): Promise<void>
  listLive(now: Date): Promise<LeaseHolder[]>
  end(processId: string): Promise<void>
  deleteExpiredBefore(time: Date): Promise<void>
}

export interface LeaseHolder {
  readonly processId: string
  /** Identifies the node that the process uses. */
  readonly node: string
  /** IDs of nodes that the process does not reach. */
  readonly unreached?: ReadonlySet<string>
}

/**
 * Returns the process that does the work for a key, such as the ID of a node, if one process is enough for it. Processes
 * that read the same leases come to the same result.
 */
export function ownerOf(
  key: string,
  holders: readonly Omit<LeaseHolder, 'node'>[],
): string | undefined {
  const able = holders.filter(({ unreached }) => !unreached?.has(key))
  const candidates = able.length > 0 ? able : holders
  return chooseFor(
    key,
    candidates.map(({ processId }) => processId),
  )
}

/**
 * Refuses a server with a node that the other servers do not reach: their requests for its sandboxes and templates would
 * fail. Records are safe either way, since each is reconciled with its own node only.
 */
export function checkSameNode(own: LeaseHolder, live: readonly LeaseHolder[]): void {
  const other = live.find(({ processId, node }) => processId !== own.processId && node !== own.node)
  if (!other) return
  throw new Fault(
    'conflict',
    'store_in_use',
    `The database is in use by a server with the node ${other.node}, and this server has the node ${own.node}: give each server its own database`,
  )
}
