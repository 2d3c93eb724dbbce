import { Fault } from '@atoll/kit/fault'

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
  /** By id or by alias, among those that every team may use. */
  find(name: string): Promise<Template | undefined>
  /** Makes the template of this alias, or brings what is given up to date; ids stay as they are. */
  ensure(template: Template, now: Date): Promise<void>
}

export interface TemplateReference {
  readonly namespace: string | undefined
  /** An alias or a template id. */
  readonly name: string
  /** A tag or the id of a build. */
  readonly tag: string | undefined
}

const defaultTag = 'default'

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
