import { Fault } from '@atoll/kit/fault'

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
}

/**
 * Each process reconciles all records with its own node, so a process with another node would end foreign sandboxes.
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
