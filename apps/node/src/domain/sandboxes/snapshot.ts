import type { CellParts } from './cell.ts'
import type { Authority } from '@atoll/contracts/network/rules'
import type { Quarantined } from './quarantine.ts'

/** A copy of a sandbox at one moment, from which new sandboxes are created. */
export interface Snapshot extends CellParts {
  readonly snapshotId: string
  /** Variables that the original sandbox was created with. */
  readonly envVars: Readonly<Record<string, string>>
  /** Certificate authority that programs in the copied memory trust. */
  readonly authority?: Authority
  /** Release of the runtime that wrote the memory. Absent: only files were kept. */
  readonly memory?: string
}

export interface SnapshotStore {
  /** Adds a snapshot atomically. `write` fills its folder. */
  add(snapshot: Snapshot, write: (place: SnapshotPlace) => Promise<void>): Promise<void>
  /** Does what `add` does, without waiting for the disk. The snapshot does not outlive this process. */
  addTemporary(snapshot: Snapshot, write: (place: SnapshotPlace) => Promise<void>): Promise<void>
  isTemporary(snapshotId: string): boolean
  /** Throws a fault when the record cannot be read. */
  find(snapshotId: string): Promise<Snapshot | undefined>
  list(): Promise<Snapshot[]>
  listQuarantined(): Promise<Quarantined[]>
  /** Seals private values again that are plain or have an older key. */
  reseal(): Promise<{ readonly resealed: number; readonly unreadable: number }>
  place(snapshotId: string): SnapshotPlace
  /** Bytes on the node's disk. */
  sizeBytes(snapshotId: string): Promise<number>
  /** Succeeds when there is no such snapshot. */
  remove(snapshotId: string): Promise<void>
  /** Removes snapshots that a crash left half written or half removed. Keeps snapshots with unreadable records. */
  sweep(): Promise<void>
}

export interface SnapshotPlace {
  readonly disk: string
  readonly memoryDir: string
}
