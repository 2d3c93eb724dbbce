import { Fault } from '@atoll/kit/fault'
import type { Order, Position } from './paging.ts'

export interface Template {
  readonly id: string
  readonly buildId: string
  readonly alias: string | undefined
  readonly public: boolean
  /** ID of the template files on nodes. */
  readonly nodeTemplateId: string
  /** Snapshot that sandboxes restore from; undefined if they boot. */
  readonly snapshotId: string | undefined
  /** Sandbox that the snapshot was made of. */
  readonly snapshotOf: { readonly sandboxId: string; readonly teamId: string } | undefined
  /** Node that has the files; undefined if every node has them. */
  readonly nodeId: string | undefined
  /** Whether other nodes can fetch the files from the object store. */
  readonly isDurable: boolean
  /** Version of the envd in the template; undefined means the envd version of the node. */
  readonly envdVersion: string | undefined
  readonly resources: Resources
}

export interface Resources {
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
}

export interface TemplateStore {
  /**
   * Finds a template by name or ID. A bare name is looked up in the namespace of the team first, then in the
   * namespace of the installation. Includes templates that the team may not use.
   */
  locate(
    reference: Pick<TemplateReference, 'namespace' | 'name'>,
    teamId: string,
  ): Promise<LocatedTemplate | undefined>
  /** Finds the ready build that a tag or build ID selects. `tag` defaults to the default tag. */
  findBuild(templateId: string, tag?: string): Promise<Template | undefined>
  findBuildById(buildId: string): Promise<Template | undefined>
  /** Creates the template, or updates the files and resources of the existing one with this name; IDs do not change. */
  ensure(template: BaseTemplate, now: Date): Promise<void>
  /**
   * Deletes a template, or only the builds that `tag` selects if the template has others. Returns `in_use` and deletes
   * nothing when sandboxes of it have not ended.
   */
  delete(templateId: string, tag: string | undefined): Promise<'deleted' | 'in_use'>
  /** Moves the tags to this build. Returns false when the build has been deleted or collected. */
  tag(templateId: string, buildId: string, tags: readonly string[], now: Date): Promise<boolean>
  untag(templateId: string, tags: readonly string[], now: Date): Promise<void>
  /**
   * Makes the template public or private and returns its names. `bare` also adds its names without the namespace, and
   * throws a `conflict` fault when one of them is taken.
   */
  publish(
    templateId: string,
    how: { readonly public: boolean; readonly bare: boolean },
    now: Date,
  ): Promise<TemplateName[]>
  /** Sorted by tag, each with the build that the tag selects. */
  listTags(templateId: string): Promise<TemplateTag[]>
  /** Lists templates of the team and of the installation by creation time; ties are sorted like sandboxes. */
  list(teamId: string, page: TemplatePage): Promise<ListedTemplate[]>
}

export interface TemplateTag {
  readonly tag: string
  readonly buildId: string
  readonly createdAt: Date
}

export type BaseTemplate = Omit<
  Template,
  'snapshotId' | 'snapshotOf' | 'envdVersion' | 'nodeId' | 'isDurable'
> & {
  readonly alias: string
}

export interface LocatedTemplate {
  readonly id: string
  /** Undefined if the template belongs to the installation. */
  readonly teamId: string | undefined
  readonly public: boolean
  readonly isSnapshot: boolean
}

/** Whether the team may create sandboxes from the template and see that the template exists. */
export function mayUse(template: LocatedTemplate, teamId: string): boolean {
  return template.public || template.teamId === teamId
}

export interface TemplatePage {
  readonly order: Order
  readonly limit?: number
  /** Last template of the previous page. */
  readonly after?: Position | undefined
  /** Selects only this template. */
  readonly id?: string
}

/** Template as its owner sees it. */
export interface ListedTemplate {
  readonly id: string
  readonly public: boolean
  readonly names: readonly TemplateName[]
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly createdBy: { readonly id: string; readonly email: string | null } | undefined
  readonly lastSpawnedAt: Date | undefined
  readonly spawnCount: number
  readonly buildCount: number
  /** Newest ready build with the default tag. */
  readonly ready: ReadyBuild | undefined
  readonly buildStatus: BuildStatus
}

export interface ReadyBuild {
  readonly id: string
  readonly resources: Resources
  /** Undefined means the envd version of the node. */
  readonly envdVersion: string | undefined
}

export const buildStatuses = ['building', 'waiting', 'ready', 'error', 'uploaded'] as const

export type BuildStatus = (typeof buildStatuses)[number]

export interface TemplateName {
  /** Slug of a team. Empty for names of the installation. */
  readonly namespace: string
  readonly alias: string
}

export function nameOf({ namespace, alias }: TemplateName): string {
  return namespace === '' ? alias : `${namespace}/${alias}`
}

export interface TemplateReference {
  readonly namespace: string | undefined
  /** Alias or template ID. */
  readonly name: string
  /** Tag or build ID. */
  readonly tag: string | undefined
}

export const defaultTag = 'default'

const lengthLimit = 128

/** Parses `[namespace/]alias[:tag]` or `templateID[:tag]`; a build ID may replace the tag. */
export function parseReference(text: string, field = 'templateID'): TemplateReference {
  const [, namespace, name, tag] =
    /^(?:([a-z0-9-_]+)\/)?([a-z0-9-_]+)(?::([a-z0-9-_.]+))?$/.exec(text.trim().toLowerCase()) ?? []
  if (name === undefined || text.length > lengthLimit) {
    throw new Fault(
      'invalid',
      'invalid_template_reference',
      `${field} is malformed: write a template ID or name such as "base" or "base:default", at most ${lengthLimit} characters of a-z, 0-9, "-" and "_"`,
    )
  }
  return { namespace, name, tag }
}

/** Checks the syntax of a standalone tag, then like `checkTag`. */
export function checkNewTag(tag: string): void {
  if (/^[a-z0-9-_.]{1,128}$/.test(tag)) return checkTag(tag)
  const shown = JSON.stringify(tag.slice(0, 40))
  throw new Fault(
    'invalid',
    'invalid_tag',
    `tags: ${shown} is malformed: use a-z, 0-9, "-", "_" and ".", at most 128 characters`,
  )
}

/** Rejects new tags that look like a build ID. */
export function checkTag(tag: string): void {
  if (!isBuildId(tag)) return
  throw new Fault(
    'invalid',
    'invalid_tag',
    `The tag ${tag} looks like a build ID: choose another tag`,
  )
}

export function isBuildId(tag: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(tag)
}
