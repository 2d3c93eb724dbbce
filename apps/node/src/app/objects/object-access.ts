import { Fault } from '@atoll/kit/fault'
import type { LogEntry, LogQuery } from '../../domain/sandboxes/log.ts'
import type { PausedSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Uploaded } from '../../domain/sandboxes/uploaded.ts'
import type { SandboxFetches } from './sandbox-fetches.ts'

/** Operations of the object store that callers of this node need. */
export interface ObjectAccess {
  readonly hasObjects: boolean
  isDurable(record: PausedSandbox): boolean
  /** Returns those of these IDs that the object store has. */
  durableOf(kind: 'snapshots' | 'templates', ids: readonly string[]): string[]
  /** Returns the IDs of snapshots whose files this node has evicted. */
  evictedSnapshots(): readonly string[]
  /** Number of evictions since the start of the node agent. */
  evictions(): number
  /** Deletes the objects of something that ended, some time after this returns. */
  deleteObjects(kind: 'snapshots' | 'templates' | 'sandboxes', id: string): Promise<void>
  /** Deletes the objects of sandboxes that ended, up to a generation, unless this node has the sandbox. */
  deleteEnded(sandboxes: readonly EndedSandbox[]): Promise<void>
  /**
   * Returns those of these contents that the object store has with all that a fetch needs, whichever node uploaded them. Throws
   * a fault when the store does not answer, or has an object that cannot be read.
   */
  findStored(wanted: Uploaded, signal: AbortSignal): Promise<Uploaded>
  /** The sandbox lives on another node, which answers for its objects from now on. */
  forgetSandbox(id: string): Promise<void>
  readonly fetchSandbox: SandboxFetches['fetch']
  /** Returns entries of a log that other nodes have uploaded. Throws a fault when the store has none of this sandbox. */
  readLog(query: LogQuery): Promise<LogEntry[]>
}

export interface EndedSandbox {
  readonly sandboxId: string
  readonly generation: number
}

/** Access of a node without an object store. */
export const noObjects: ObjectAccess = {
  hasObjects: false,
  isDurable: () => false,
  durableOf: () => [],
  evictedSnapshots: () => [],
  evictions: () => 0,
  deleteObjects: async () => {},
  deleteEnded: async () => refuse(),
  findStored: async () => refuse(),
  forgetSandbox: async () => {},
  fetchSandbox: async () => refuse(),
  readLog: async () => refuse(),
}

function refuse(): never {
  throw new Fault(
    'invalid',
    'objects_disabled',
    'This node has no object store: set ATOLL_S3_BUCKET',
  )
}
