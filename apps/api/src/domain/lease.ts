import { Fault } from '@atoll/kit/fault'

/** Which of the server processes on one store live. */
export interface LeaseStore {
  renew(holder: LeaseHolder, expiresAt: Date): Promise<void>
  listLive(now: Date): Promise<LeaseHolder[]>
  end(processId: string): Promise<void>
  deleteExpiredBefore(time: Date): Promise<void>
}

export interface LeaseHolder {
  readonly processId: string
  /** What tells the node that it uses from others. */
  readonly node: string
}

/** Each process holds the records against what its node runs: with another node it would end what others made. */
export function checkSameNode(own: LeaseHolder, live: readonly LeaseHolder[]): void {
  const other = live.find(({ processId, node }) => processId !== own.processId && node !== own.node)
  if (!other) return
  throw new Fault(
    'conflict',
    'store_in_use',
    `The store is in use for the node ${other.node}, and this server has the node ${own.node}: give each a database of its own`,
  )
}
