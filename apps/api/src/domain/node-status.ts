import { Fault } from '@atoll/kit/fault'

export const nodeStatuses = ['ready', 'draining', 'connecting', 'unhealthy', 'standby'] as const

export type NodeStatus = (typeof nodeStatuses)[number]

/** Statuses that an operator can set. The control plane detects the others. */
export type WantedStatus = 'ready' | 'draining' | 'standby'

export interface NodeStatusStore {
  /** Undefined if no operator has set a status, which means ready. */
  find(nodeId: string): Promise<{ readonly status: WantedStatus; readonly since: Date } | undefined>
  set(nodeId: string, status: WantedStatus, now: Date): Promise<void>
}

export function toWanted(status: NodeStatus): WantedStatus {
  if (status === 'ready' || status === 'draining' || status === 'standby') return status
  throw new Fault(
    'conflict',
    'node_status',
    `The status of a node cannot be set to ${status}: use ready, draining or standby`,
  )
}
