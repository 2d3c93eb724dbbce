import { Fault } from '@atoll/kit/fault'

export const nodeStatuses = ['ready', 'draining', 'connecting', 'unhealthy', 'standby'] as const

export type NodeStatus = (typeof nodeStatuses)[number]

/** What an operator wants of a node; the other statuses are for us to find out. */
export type WantedStatus = 'ready' | 'draining' | 'standby'

export interface NodeStatusStore {
  /** Undefined: nobody has said anything, it is to be ready. */
  find(nodeId: string): Promise<{ readonly status: WantedStatus; readonly since: Date } | undefined>
  set(nodeId: string, status: WantedStatus, now: Date): Promise<void>
}

export function toWanted(status: NodeStatus): WantedStatus {
  if (status === 'ready' || status === 'draining' || status === 'standby') return status
  throw new Fault(
    'conflict',
    'node_status',
    `A node cannot be told to be ${status}: use ready, draining or standby`,
  )
}
