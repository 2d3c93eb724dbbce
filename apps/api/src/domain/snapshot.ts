import type { Position } from './sandbox-store.ts'
import { defaultTag, nameOf } from './template.ts'
import type { Resources, TemplateName } from './template.ts'

/**
 * A copy of a sandbox on its node. One that is published can be used as a template: it is a build of one, under a name or
 * under the template's id alone. Others belong to work under way, such as a fork, and go with it.
 */
export interface Snapshot {
  /** What the node knows it by. */
  readonly id: string
  readonly teamId: string
  /** What it is a copy of. */
  readonly sandboxId: string
  /** Which server process is at it; undefined once it is published or left. */
  readonly holder: string | undefined
  /** The build that it is the content of. */
  readonly buildId: string | undefined
  readonly createdAt: Date
  /** What it takes on the disk of its node, or is thought to take; undefined for those of an older Atoll. */
  readonly sizeBytes: number | undefined
}

/** What it becomes a build of. */
export interface Publication {
  readonly name: TemplateName | undefined
  readonly tag: string
  readonly nodeTemplateId: string
  readonly resources: Resources
  /** Undefined: that of the node, since its sandboxes boot. */
  readonly envdVersion: string | undefined
}

export interface ListedSnapshot {
  readonly id: string
  readonly createdAt: Date
  readonly templateId: string
  readonly buildId: string
  readonly names: readonly TemplateName[]
  /** Those that mean this build now, the newest first. */
  readonly tags: readonly string[]
}

export interface SnapshotFilter {
  readonly teamId: string
  readonly sandboxId?: string | undefined
  readonly templateId?: string | undefined
  readonly buildId?: string | undefined
}

export interface SnapshotStore {
  /**
   * Before the node has it: what it has without a record is taken for a leftover. `check` hears what the team keeps
   * already and may throw; of two that are inserted at a time one hears of the other.
   */
  insert(snapshot: Snapshot, check?: (keptBytes: number) => void): Promise<void>
  /** What it turned out to take. */
  resize(id: string, sizeBytes: number): Promise<void>
  /** Throws a `conflict` fault when the name belongs to something that is no snapshot of this team. */
  checkName(name: TemplateName, teamId: string): Promise<void>
  /** From now on it can be used. Faults as of `checkName`. */
  publish(id: string, publication: Publication, now: Date): Promise<{ readonly templateId: string }>
  /** Newest first. */
  list(
    filter: SnapshotFilter,
    page: { readonly limit: number; readonly after: Position | undefined },
  ): Promise<ListedSnapshot[]>
  /** Those that are no build, or no longer: of work under way, or left. */
  listLoose(): Promise<Snapshot[]>
  /** Which of these have a record. */
  known(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Of the record alone. */
  delete(id: string): Promise<void>
}

/** What users call it: something that names this very build. */
export function snapshotIdOf({ templateId, buildId, names, tags }: ListedSnapshot): string {
  const [name] = names
  const tag = tags.includes(defaultTag) ? defaultTag : (tags[0] ?? buildId)
  return `${name ? nameOf(name) : templateId}:${tag}`
}
