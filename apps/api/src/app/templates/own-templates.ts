import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Build, BuildStore } from '../../domain/builds/build.ts'
import { fromToken, toToken } from '../../domain/paging.ts'
import type { ListedTemplate, TemplateName, TemplateStore } from '../../domain/template.ts'
import { findOwnTemplate } from './own-template.ts'

/** Reads and changes a team's own templates. */
export interface OwnTemplates {
  /** Returns the template with a page of its builds, newest first. */
  get(
    teamId: string,
    templateId: string,
    page: { readonly limit: number; readonly nextToken: string | undefined },
  ): Promise<TemplateWithBuilds>
  /** Returns the template's names. Changes nothing when `public` is undefined. */
  update(teamId: string, templateId: string, change: TemplateChange): Promise<TemplateName[]>
}

export interface TemplateWithBuilds {
  readonly template: ListedTemplate
  readonly builds: readonly Build[]
  readonly nextToken?: string
}

export interface TemplateChange {
  readonly public: boolean | undefined
  /** Whether a public template can be named without its namespace. */
  readonly bare: boolean
}

export function createOwnTemplates(ports: {
  readonly templates: TemplateStore
  readonly builds: BuildStore
  readonly clock: Clock
}): OwnTemplates {
  const { templates, builds, clock } = ports
  const read = async (teamId: string, text: string): Promise<ListedTemplate> => {
    const { id } = await findOwnTemplate(templates, text, teamId)
    const [template] = await templates.list(teamId, { order: 'asc', id })
    return template ?? gone(text)
  }
  return {
    async get(teamId, text, { limit, nextToken }) {
      const after = nextToken === undefined ? undefined : fromToken(nextToken, 'desc')
      const template = await read(teamId, text)
      // Read one row more than the limit to see whether there is another page.
      const found = await builds.list(template.id, { limit: limit + 1, after })
      const page = found.slice(0, limit)
      const last = page.at(-1)
      if (!last || found.length <= limit) return { template, builds: page }
      const position = { startedAt: last.createdAt, id: last.id }
      return { template, builds: page, nextToken: toToken(position, 'desc') }
    },
    async update(teamId, text, change) {
      const template = await read(teamId, text)
      if (change.public === undefined) return [...template.names]
      const bare = change.public && change.bare
      return templates.publish(template.id, { public: change.public, bare }, clock.now())
    },
  }
}

function gone(text: string): never {
  throw new Fault(
    'not_found',
    'template_not_found',
    `Template ${text} was deleted by another request`,
  )
}
