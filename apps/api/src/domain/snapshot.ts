import type { Position } from './paging.ts'
import { defaultTag, nameOf } from './template.ts'
import type { Resources, TemplateName } from './template.ts'

/**
 * Snapshot of a sandbox on its node. A published snapshot is a build of a template and can be used like one, by name or
 * by template ID. An unpublished snapshot belongs to an operation in progress, such as a fork, and is deleted with it.
 */
export interface Snapshot {
  /** ID on the node. */
  readonly id: string
  readonly teamId: string
  /** Source sandbox. */
  readonly sandboxId: string
  /** Node that has the snapshot, as in `Sandbox`. */
  readonly nodeId: string
  /** Server process that works on the snapshot; undefined once published or abandoned. */
  readonly holder: string | undefined
  /** Build whose content is this snapshot. */
  readonly buildId: string | undefined
  readonly createdAt: Date
  /** Measured or estimated size on the disk of the node; undefined for snapshots of old Atoll versions. */
  readonly sizeBytes: number | undefined
}

/** Template and build that a published snapshot becomes. */
export interface Publication {
  readonly name: TemplateName | undefined
  readonly tag: string
  readonly nodeTemplateId: string
  readonly resources: Resources
  /** Undefined means the envd version of the node, because sandboxes from this snapshot boot. */
  readonly envdVersion: string | undefined
}

export interface ListedSnapshot {
  readonly id: string
  readonly sandboxId: string
  readonly createdAt: Date
  readonly templateId: string
  readonly buildId: string
  readonly names: readonly TemplateName[]
  /** Tags that currently select this build, newest first. */
  readonly tags: readonly string[]
}

export interface SnapshotFilter {
  readonly teamId: string
  readonly sandboxId?: string | undefined
  /** Not empty, and at most a few hundred. */
  readonly sandboxIds?: readonly string[] | undefined
  readonly templateId?: string | undefined
  readonly buildId?: string | undefined
}

export interface SnapshotStore {
  /**
   * Call before the node creates the snapshot: the node's snapshots without a record count as orphaned. `check`
   * receives the kept bytes of the team and may throw. Concurrent inserts of one team are serialized.
   */
  insert(snapshot: Snapshot, check?: (keptBytes: number) => void): Promise<void>
  /** Records the measured size. */
  resize(id: string, sizeBytes: number): Promise<void>
  /** Throws a `conflict` fault when the name belongs to anything but a snapshot of this team. */
  checkName(name: TemplateName, teamId: string): Promise<void>
  /** Makes the snapshot usable as a template. Faults: see `checkName`. */
  publish(id: string, publication: Publication, now: Date): Promise<{ readonly templateId: string }>
  /** Newest first. */
  list(
    filter: SnapshotFilter,
    page: { readonly limit: number; readonly after: Position | undefined },
  ): Promise<ListedSnapshot[]>
  /** Lists snapshots without a build: in progress or orphaned. */
  listUnpublished(): Promise<Snapshot[]>
  /** Returns the IDs that have a record. */
  known(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Notes that the object store has these snapshots. */
  markDurable(ids: readonly string[]): Promise<void>
  /** Notes that the object store does not have these snapshots, as far as they belong to the node that says so. */
  clearDurable(nodeId: string, ids: readonly string[]): Promise<void>
  /** Deletes only the record. */
  delete(id: string): Promise<void>
}

/** Snapshot ID in the API: a reference to exactly this build. */
export function snapshotIdOf({ templateId, buildId, names, tags }: ListedSnapshot): string {
  const [name] = names
  const tag = tags.includes(defaultTag) ? defaultTag : (tags[0] ?? buildId)
  return `${name ? nameOf(name) : templateId}:${tag}`
}
