import type { SandboxNetwork } from '../network/network.ts'
import type { SandboxRef } from '../node.ts'
import type { Sandbox, SandboxMove, SandboxState, StartedSandbox } from './sandbox.ts'
import type { SortedList, SortPosition } from './sandbox-sort.ts'

export interface SandboxStore {
  /**
   * Returns false and inserts nothing when the team already has `limit` sandboxes in `placeStates`. Concurrent inserts
   * of one team are serialized, so they cannot exceed the limit together.
   */
  insert(sandbox: Sandbox, limit?: number): Promise<boolean>
  /** Includes ended sandboxes as long as their records are kept. */
  find(id: string): Promise<Sandbox | undefined>
  /**
   * Applies `change` atomically. An exception from `change` leaves the record as is. Undefined if there is no record.
   */
  update<After extends Sandbox>(
    id: string,
    change: (current: Sandbox) => After,
  ): Promise<After | undefined>
  /**
   * Updates like `update`; `change` also receives the number of sandboxes that count towards the limit of the team.
   * Serialized with other counted updates and inserts of the team.
   */
  updateCounted<After extends Sandbox>(
    teamId: string,
    id: string,
    change: (current: Sandbox, places: number) => After,
  ): Promise<After | undefined>
  /** Updates like `update`; `change` also receives the `keptBytes` of the team. Serialized like `updateCounted`. */
  updateWithDiskUsage<After extends Sandbox>(
    id: string,
    change: (current: Sandbox, keptBytes: number) => After,
  ): Promise<After | undefined>
  /** Total disk usage of the paused sandboxes and snapshots of a team. */
  keptBytes(teamId: string): Promise<number>
  /** Lists all matches, newest first. */
  list(filter: SandboxFilter): Promise<StartedSandbox[]>
  listPage(filter: SandboxFilter, page: SandboxPage): Promise<RankedSandbox[]>
  /** States without sandboxes are missing. */
  countByState(filter: SandboxFilter): Promise<ReadonlyMap<SandboxState, number>>
  /** Keyed by team; teams without running sandboxes are missing. */
  countRunningByTeam(): Promise<ReadonlyMap<string, number>>
  /** Lists sandboxes of all teams, without metadata, for reconcilers. */
  listByState(states: readonly SandboxState[]): Promise<SandboxSummary[]>
  /** Lists the sandboxes of all teams that belong to a node, for its reconciler. */
  listOfNode(nodeId: string, states: readonly SandboxState[]): Promise<OwnedSandbox[]>
  /**
   * Lists up to `limit` sandboxes whose only copy is on this node, as far as the database knows: neither ended, nor paused (or about
   * to be resumed) with all of their content in the object store.
   */
  listLostWith(nodeId: string, limit: number): Promise<LostSandbox[]>
  /** Counts the paused sandboxes of a node. */
  countPausedOf(nodeId: string): Promise<number>
  /** Lists paused sandboxes of all nodes whose move is not finished. */
  listMoving(): Promise<MovingSandbox[]>
  /** Lists unfinished network changes of all teams. */
  listNetworkChanges(): Promise<NetworkChange[]>
  /** Lists sandboxes of a team in `placeStates` whose header rules refer to secrets. */
  listWithSecrets(
    teamId: string,
  ): Promise<{ readonly id: string; readonly network: SandboxNetwork }[]>
  /** Leaves out sandboxes that can only be paused by a node that is not in `nodeIds`. */
  listExpired(now: Date, limit: number, nodeIds: readonly string[]): Promise<string[]>
  /** Earliest timeout of a running sandbox. Leaves out the same sandboxes as `listExpired`. */
  nextEnd(nodeIds: readonly string[]): Promise<Date | undefined>
  /** Lists ended sandboxes whose objects no node was asked to delete yet, with the newest generation that was paused. */
  listEndedWithObjects(limit: number): Promise<SandboxRef[]>
  deleteEndedBefore(time: Date, limit: number): Promise<number>
}

export interface SandboxSummary {
  readonly id: string
  readonly state: SandboxState
}

export type LostSandbox = Pick<
  Sandbox,
  'id' | 'state' | 'keptGeneration' | 'keptId' | 'durableGeneration'
>

export interface OwnedSandbox extends SandboxSummary {
  readonly nodeId: string
  readonly generation: number
  readonly isKillRequested: boolean
  readonly keptGeneration: number | undefined
  readonly keptId: string | undefined
  readonly durableGeneration: number | undefined
  readonly isMoving: boolean
  readonly move: SandboxMove | undefined
}

export interface MovingSandbox {
  readonly id: string
  readonly nodeId: string
  /** Whether the object store has the content. */
  readonly isDurable: boolean
}

export interface NetworkChange {
  readonly id: string
  /** Last process that worked on the change. */
  readonly holder: string
}

export interface SandboxFilter {
  readonly teamId: string
  readonly states: readonly SandboxState[]
  /** All pairs must match. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Inclusive. */
  readonly startedAfter?: Date | undefined
  readonly templateId?: string | undefined
  /** Words that must all occur in the ID, the template or a pair of metadata, in upper or lower case. */
  readonly words?: readonly string[] | undefined
}

export interface SandboxPage extends SortedList {
  readonly limit: number
  /** Last sandbox of the previous page. */
  readonly after?: SortPosition | undefined
}

export interface RankedSandbox {
  readonly sandbox: StartedSandbox
  /** Value of the column that the list is sorted by. */
  readonly rank: number | string
}
