import type { SandboxNetwork } from './network.ts'
import type { Sandbox, SandboxState, StartedSandbox } from './sandbox.ts'

/** Where the records of sandboxes are kept. */
export interface SandboxStore {
  /**
   * False, and nothing done, when its team has `limit` sandboxes already, counting those that run or are about to. Of
   * two inserts at a time that would reach the limit together, one is let in.
   */
  insert(sandbox: Sandbox, limit?: number): Promise<boolean>
  /** Also one that has ended, as long as its record is kept. */
  find(id: string): Promise<Sandbox | undefined>
  /** Applies `change` alone; what it throws leaves the record as it was. Undefined when there is none. */
  update<After extends Sandbox>(
    id: string,
    change: (current: Sandbox) => After,
  ): Promise<After | undefined>
  /**
   * Like `update`, and `change` also hears how many sandboxes its team has that count towards its limit. Of two such
   * changes or inserts of one team at a time, one hears of the other.
   */
  updateCounted<After extends Sandbox>(
    teamId: string,
    id: string,
    change: (current: Sandbox, places: number) => After,
  ): Promise<After | undefined>
  /** Like `update`, and `change` also hears what `keptBytes` gives; that counts as in `updateCounted`. */
  updateWeighed<After extends Sandbox>(
    id: string,
    change: (current: Sandbox, keptBytes: number) => After,
  ): Promise<After | undefined>
  /** What the paused sandboxes and the snapshots of a team take. */
  keptBytes(teamId: string): Promise<number>
  list(filter: SandboxFilter, page?: SandboxPage): Promise<StartedSandbox[]>
  count(filter: SandboxFilter): Promise<number>
  /** By team; those without are left out. */
  countRunningByTeam(): Promise<ReadonlyMap<string, number>>
  /** Of all teams, without metadata: for reconcilers. */
  listByState(states: readonly SandboxState[]): Promise<SandboxSummary[]>
  /** Those with a change of their network that is not at its end, of all teams. */
  listNetworkChanges(): Promise<NetworkChange[]>
  /** Those of a team that run or are about to and name secrets in their rules. */
  listWithSecrets(
    teamId: string,
  ): Promise<{ readonly id: string; readonly network: SandboxNetwork }[]>
  listExpired(now: Date, limit: number): Promise<string[]>
  /** The earliest end of a running sandbox. */
  nextEnd(): Promise<Date | undefined>
  deleteEndedBefore(time: Date, limit: number): Promise<number>
}

export interface SandboxSummary {
  readonly id: string
  readonly state: SandboxState
}

export interface NetworkChange {
  readonly id: string
  /** Which process was at it last. */
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
}

export interface SandboxPage {
  readonly order: Order
  readonly limit: number
  /** The last sandbox of the page before. */
  readonly after?: Position | undefined
}

export type Order = 'asc' | 'desc'

/** By start time; ties by id, ascending under desc and descending under asc. */
export interface Position {
  readonly startedAt: Date
  readonly id: string
}
