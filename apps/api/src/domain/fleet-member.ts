/** Edges and nodes that may call the api, and the tokens with which they join. */
export type MemberRole = 'edge' | 'node'

export interface FleetMember {
  readonly id: string
  readonly role: MemberRole
  readonly joinedAt: Date
  /** Certificates of a removed member are refused until they have expired. */
  readonly removedAt: Date | undefined
  /** When an operator said that the node never comes back: it can never join again. */
  readonly forgottenAt: Date | undefined
}

export interface JoinToken {
  /** SHA-256 of the secret. */
  readonly hash: string
  readonly role: MemberRole
  readonly expiresAt: Date
}

export interface NodeHeartbeat {
  readonly id: string
  /** host:port. */
  readonly address: string
  /** Whether the agent does not answer calls yet. */
  readonly isStarting: boolean
}

export interface NodeAddress {
  readonly id: string
  /** host:port. */
  readonly address: string
  /** Changes with each heartbeat. Undefined: there was none yet. */
  readonly seenAt: number | undefined
  /** Whether the agent does not answer calls yet. */
  readonly isStarting?: boolean
}

export type JoinOutcome = 'joined' | 'invalid_token' | 'other_role' | 'known_id' | 'forgotten'

export interface FleetStore {
  /** Extends the life of a token that is there and was not used. */
  insertToken(token: JoinToken, now: Date): Promise<void>
  /**
   * Uses up the token and adds the member, in one transaction. `known_id`: there is such a member, or it was removed
   * after `removedBefore`. `forgotten`: the node is gone for good. Only `joined` changes anything.
   */
  join(
    request: { readonly tokenHash: string; readonly role: MemberRole; readonly id: string },
    now: Date,
    removedBefore: Date,
  ): Promise<JoinOutcome>
  findMember(id: string): Promise<FleetMember | undefined>
  /** Leaves out edges that have made no call since this time. */
  listMembers(edgesSince: Date): Promise<FleetMember[]>
  /** Notes a call of an edge. */
  noteEdge(id: string, now: Date): Promise<void>
  /** Returns false if there is no such member. */
  remove(id: string, now: Date): Promise<boolean>
  listRemovedAfter(time: Date): Promise<string[]>
  /** Removes a node for good. Keeps the times of an earlier call. */
  forget(id: string, now: Date): Promise<void>
  /** Lists nodes that were forgotten before this time. */
  listForgotten(before: Date): Promise<string[]>
  /** Returns the time of a node's last heartbeat, and its address, also of a removed node. Undefined: it sent none. */
  lastSeen(
    id: string,
  ): Promise<{ readonly at: Date | undefined; readonly address: string | undefined }>
  /** Notes the heartbeats of nodes that are members, and returns their IDs. */
  noteHeartbeats(nodes: readonly NodeHeartbeat[], now: Date): Promise<ReadonlySet<string>>
  /** Lists the nodes that are members and have reported their address. */
  listNodes(): Promise<NodeAddress[]>
}
