import { Fault } from '@atoll/kit/fault'
import type { Order, Position } from './sandbox-store.ts'

export interface Template {
  readonly id: string
  readonly buildId: string
  readonly alias: string | undefined
  readonly public: boolean
  /** What nodes know its files by. */
  readonly nodeTemplateId: string
  /** The copy of a sandbox that it goes on from; undefined: it begins anew. */
  readonly snapshotId: string | undefined
  /** Of the envd that comes with it; undefined: that of the node. */
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
   * By id or by name: a bare one is looked for in the namespace of the team first, then among those of the installation.
   * Also what the team may not use.
   */
  locate(
    reference: Pick<TemplateReference, 'namespace' | 'name'>,
    teamId: string,
  ): Promise<LocatedTemplate | undefined>
  /** The build that a tag or a build id selects, if sandboxes can be made of it; without one, the default tag. */
  findBuild(templateId: string, tag?: string): Promise<Template | undefined>
  findBuildById(buildId: string): Promise<Template | undefined>
  /** Makes the template of this name, or brings what is given up to date; ids stay as they are. */
  ensure(template: BaseTemplate, now: Date): Promise<void>
  /**
   * Removes a template, or only what a tag stands for where it has others as well. `in_use`: sandboxes that are not over
   * were made of it, and nothing was done.
   */
  delete(templateId: string, tag: string | undefined): Promise<'deleted' | 'in_use'>
  /** These tags mean this build from now on. */
  tag(templateId: string, buildId: string, tags: readonly string[], now: Date): Promise<void>
  untag(templateId: string, tags: readonly string[]): Promise<void>
  /**
   * Lets every team use it, or only the own one; gives its names. With `bare` it gets its names without the namespace,
   * too: a `conflict` fault when one of them is taken.
   */
  publish(
    templateId: string,
    how: { readonly public: boolean; readonly bare: boolean },
    now: Date,
  ): Promise<TemplateName[]>
  /** By name, each with the build that it means. */
  listTags(templateId: string): Promise<TemplateTag[]>
  /** Those of the team and those of the installation, by creation; ties as in lists of sandboxes. */
  list(teamId: string, page: TemplatePage): Promise<ListedTemplate[]>
}

export interface TemplateTag {
  readonly tag: string
  readonly buildId: string
  readonly createdAt: Date
}

export type BaseTemplate = Omit<Template, 'snapshotId' | 'envdVersion'> & { readonly alias: string }

export interface LocatedTemplate {
  readonly id: string
  /** Undefined: it belongs to the installation. */
  readonly teamId: string | undefined
  readonly public: boolean
  readonly isSnapshot: boolean
}

/** Whether this team may make sandboxes of it, and see that it exists. */
export function mayUse(template: LocatedTemplate, teamId: string): boolean {
  return template.public || template.teamId === teamId
}

export interface TemplatePage {
  readonly order: Order
  readonly limit?: number
  /** The last template of the page before. */
  readonly after?: Position | undefined
  /** Nothing but this template. */
  readonly id?: string
}

/** A template as its owner sees it. */
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
  /** The newest build that new sandboxes can be made of. */
  readonly ready: ReadyBuild | undefined
  readonly buildStatus: BuildStatus
}

export interface ReadyBuild {
  readonly id: string
  readonly resources: Resources
  /** Undefined: that of the node. */
  readonly envdVersion: string | undefined
}

export const buildStatuses = ['building', 'waiting', 'ready', 'error', 'uploaded'] as const

export type BuildStatus = (typeof buildStatuses)[number]

/** What a template is called. */
export interface TemplateName {
  /** Of a team; empty: the name belongs to the whole installation. */
  readonly namespace: string
  readonly alias: string
}

export function nameOf({ namespace, alias }: TemplateName): string {
  return namespace === '' ? alias : `${namespace}/${alias}`
}

export interface TemplateReference {
  readonly namespace: string | undefined
  /** An alias or a template id. */
  readonly name: string
  /** A tag or the id of a build. */
  readonly tag: string | undefined
}

export const defaultTag = 'default'

const lengthLimit = 128

/** `[namespace/]alias[:tag]` or `templateID[:tag]`; a build id may stand in the place of the tag. */
export function parseReference(text: string, field = 'templateID'): TemplateReference {
  const [, namespace, name, tag] =
    /^(?:([a-z0-9-_]+)\/)?([a-z0-9-_]+)(?::([a-z0-9-_.]+))?$/.exec(text.trim().toLowerCase()) ?? []
  if (name === undefined || text.length > lengthLimit) {
    throw new Fault(
      'invalid',
      'invalid_template_reference',
      `${field} is malformed: write a template id or name such as "base" or "base:default", at most ${lengthLimit} characters of a-z, 0-9, "-" and "_"`,
    )
  }
  return { namespace, name, tag }
}

/** A tag as it stands alone, to be given to something. */
export function checkNewTag(tag: string): void {
  if (/^[a-z0-9-_.]{1,128}$/.test(tag)) return checkTag(tag)
  const shown = JSON.stringify(tag.slice(0, 40))
  throw new Fault(
    'invalid',
    'invalid_tag',
    `tags: ${shown} is malformed: use a-z, 0-9, "-", "_" and ".", at most 128 characters`,
  )
}

/** A tag that is given to something: it must not look like the id of a build. */
export function checkTag(tag: string): void {
  if (!isBuildId(tag)) return
  throw new Fault(
    'invalid',
    'invalid_tag',
    `The tag ${tag} looks like the id of a build: take another`,
  )
}

export function isBuildId(tag: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(tag)
}
