import { Fault } from '@atoll/kit/fault'

export const nodeStatuses = ['ready', 'draining', 'connecting', 'unhealthy', 'standby'] as const

export type NodeStatus = (typeof nodeStatuses)[number]

/** Statuses that an operator can set. The control plane detects the others. */
export type WantedStatus = 'ready' | 'draining' | 'standby'

export interface StoredStatus {
  readonly status: WantedStatus
  readonly since: Date
  /** Whether running sandboxes are to be moved to other nodes. */
  readonly movesSandboxes: boolean
}

export interface NodeStore {
  /** Returns the status that an operator wants. Undefined if the node is not registered, which means ready. */
  find(nodeId: string): Promise<StoredStatus | undefined>
  set(nodeId: string, wanted: Omit<StoredStatus, 'since'>, now: Date): Promise<void>
  /** Lists nodes whose running sandboxes are to be moved to other nodes. */
  listMoving(): Promise<string[]>
  /** Forgets failed moves of running sandboxes of the node, so that the next attempts are due at once. */
  forgetFailedMoves(nodeId: string): Promise<void>
  listStatuses(): Promise<{ readonly id: string; readonly status: WantedStatus }[]>
  /**
   * Makes this epoch the current one of the node. Returns `superseded` and changes nothing if the store knows a newer
   * epoch, or another agent in the same epoch: the agent runs on a copy or an old backup of the node's data.
   */
  register(node: NodeRegistration, now: Date): Promise<'registered' | 'superseded'>
  /**
   * Assigns records without a node to this one, if it is the only node. Returns how many records still have none.
   */
  claimRecords(nodeId: string): Promise<number>
}

export interface NodeRegistration {
  readonly id: string
  readonly epoch: number
  /** Agent that began the epoch. */
  readonly instanceId: string
}

export function toWanted(status: NodeStatus): WantedStatus {
  if (status === 'ready' || status === 'draining' || status === 'standby') return status
  throw new Fault(
    'conflict',
    'node_status',
    `The status of a node cannot be set to ${status}: use ready, draining or standby`,
  )
}
