import { Fault } from '@atoll/kit/fault'
import type { Order, Position } from './sandbox-store.ts'

export interface Template {
  readonly id: string
  readonly buildId: string
  readonly alias: string | undefined
  readonly public: boolean
  /** What nodes know its files by. */
  readonly nodeTemplateId: string
  readonly resources: Resources
}

export interface Resources {
  readonly cpuCount: number
  readonly memoryMb: number
  readonly diskSizeMb: number
}

export interface TemplateStore {
  /** By id or by name, among those that this team may use. */
  find(name: string, teamId: string): Promise<Template | undefined>
  /** Makes the template of this name, or brings what is given up to date; ids stay as they are. */
  ensure(template: Template & { readonly alias: string }, now: Date): Promise<void>
  /** Those of the team and those of the installation, by creation; ties as in lists of sandboxes. */
  list(teamId: string, page: TemplatePage): Promise<ListedTemplate[]>
}

export interface TemplatePage {
  readonly order: Order
  readonly limit?: number
  /** The last template of the page before. */
  readonly after?: Position | undefined
}

/** A template as its owner sees it. */
export interface ListedTemplate {
  readonly id: string
  readonly public: boolean
  readonly names: readonly { readonly namespace: string | undefined; readonly alias: string }[]
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
export function parseReference(text: string): TemplateReference {
  const [, namespace, name, tag] =
    /^(?:([a-z0-9-_]+)\/)?([a-z0-9-_]+)(?::([a-z0-9-_.]+))?$/.exec(text.trim().toLowerCase()) ?? []
  if (name === undefined || text.length > lengthLimit) {
    throw new Fault(
      'invalid',
      'invalid_template_reference',
      `templateID is malformed: write a template id or name such as "base" or "base:default", at most ${lengthLimit} characters of a-z, 0-9, "-" and "_"`,
    )
  }
  return { namespace, name, tag }
}

/** Whether the tag of a reference selects the build that this template has. */
export function selectsBuild(template: Template, tag: string | undefined): boolean {
  return tag === undefined || tag === defaultTag || tag === template.buildId
}
