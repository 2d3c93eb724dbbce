import type { Makings } from './cell.ts'
import type { Authority } from './network-rules.ts'
import type { Quarantined } from './quarantine.ts'

/** A copy of a sandbox at one moment, that new ones are made from. */
export interface Snapshot extends Makings {
  readonly snapshotId: string
  /** What its sandbox was given. */
  readonly envVars: Readonly<Record<string, string>>
  /** Whom its sandbox trusted, and so what is in its memory does. */
  readonly authority?: Authority
  /** Which release of its runtime wrote its memory; absent: files alone were kept. */
  readonly memory?: string
}

export interface SnapshotStore {
  /** `write` fills the folder; the snapshot is there once it is whole, or not at all. */
  add(snapshot: Snapshot, write: (place: SnapshotPlace) => Promise<void>): Promise<void>
  /** A fault when its record cannot be read. */
  find(snapshotId: string): Promise<Snapshot | undefined>
  list(): Promise<Snapshot[]>
  listQuarantined(): Promise<Quarantined[]>
  place(snapshotId: string): SnapshotPlace
  /** What it takes on the node's disk. */
  sizeBytes(snapshotId: string): Promise<number>
  /** Succeeds when there is none. */
  remove(snapshotId: string): Promise<void>
  /** Removes snapshots that a crash left half written or half removed. Keeps what cannot be read. */
  sweep(): Promise<void>
}

export interface SnapshotPlace {
  readonly disk: string
  readonly memoryDir: string
}
