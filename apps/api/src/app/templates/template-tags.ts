import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { checkNewTag, defaultTag, mayUse, parseReference } from '../../domain/template.ts'
import type { LocatedTemplate, TemplateStore, TemplateTag } from '../../domain/template.ts'

/**
 * Manages template tags. Another team's template is reported as forbidden, not as missing, because clients expect that.
 */
export interface TemplateTags {
  /** Returns the ID of the build that the tags now point to. */
  assign(teamId: string, target: string, tags: readonly string[]): Promise<string>
  remove(teamId: string, name: string, tags: readonly string[]): Promise<void>
  list(teamId: string, reference: string): Promise<TemplateTag[]>
  find(teamId: string, alias: string): Promise<LocatedTemplate>
}

export function createTemplateTags(ports: {
  readonly templates: TemplateStore
  readonly clock: Clock
}): TemplateTags {
  const { templates, clock } = ports

  const locate = async (teamId: string, text: string, field: string) => {
    const reference = parseReference(text, field)
    const template = await templates.locate(reference, teamId)
    if (!template) throw notFound(`Template ${text} was not found`)
    return { template, tag: reference.tag }
  }
  const own = async (teamId: string, text: string, field: string) => {
    const located = await locate(teamId, text, field)
    if (located.template.teamId === teamId) return located
    throw forbidden(text)
  }

  return {
    async assign(teamId, target, tags) {
      for (const tag of tags) checkNewTag(tag)
      const { template, tag } = await own(teamId, target, 'target')
      const build = await templates.findBuild(template.id, tag)
      if (build && (await templates.tag(template.id, build.buildId, tags, clock.now()))) {
        return build.buildId
      }
      throw notFound(`Template ${target} has no build to tag`)
    },
    async remove(teamId, name, tags) {
      if (tags.includes(defaultTag)) {
        throw invalid(
          `The tag ${defaultTag} cannot be removed: delete the template, or move the tag`,
        )
      }
      if (parseReference(name, 'name').tag !== undefined) {
        throw invalid('name must be a template id or name without a tag')
      }
      const { template } = await own(teamId, name, 'name')
      await templates.untag(template.id, tags, clock.now())
    },
    async list(teamId, text) {
      const { template } = await locate(teamId, text, 'templateID')
      if (!mayUse(template, teamId)) throw forbidden(text)
      return templates.listTags(template.id)
    },
    async find(teamId, alias) {
      const { template, tag } = await locate(teamId, alias, 'alias')
      if (!mayUse(template, teamId)) throw forbidden(alias)
      if (tag !== undefined && !(await templates.findBuild(template.id, tag))) {
        throw notFound(`Template ${alias} was not found: it has no such tag`)
      }
      return template
    },
  }
}

function notFound(message: string): Fault {
  return new Fault('not_found', 'template_not_found', message)
}

function forbidden(text: string): Fault {
  return new Fault(
    'forbidden',
    'template_forbidden',
    `Template ${text} does not belong to your team`,
  )
}

function invalid(message: string): Fault {
  return new Fault('invalid', 'invalid_tag', message)
}
