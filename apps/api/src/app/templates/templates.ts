import { Fault } from '@atoll/kit/fault'
import type { Fleet } from '../nodes/fleet.ts'
import { fromToken, toToken } from '../../domain/paging.ts'
import type { ListedTemplate, TemplatePage, TemplateStore } from '../../domain/template.ts'

/** Templates that a team can use: its own and those of the installation. */
export interface Templates {
  /** Throws a `not_found` fault when the template was deleted. */
  get(teamId: string, id: string): Promise<TemplateView>
  /** Returns templates oldest first. */
  listAll(teamId: string): Promise<TemplateView[]>
  /** Returns templates newest first. */
  list(
    teamId: string,
    page: { readonly limit: number; readonly nextToken: string | undefined },
  ): Promise<{ readonly templates: readonly TemplateView[]; readonly nextToken?: string }>
}

export type TemplateView = ListedTemplate & { readonly envdVersion: string }

const nodeTimeoutMs = 2_000

export function createTemplates({
  store,
  fleet,
}: {
  readonly store: TemplateStore
  readonly fleet: Pick<Fleet, 'any'>
}): Templates {
  let known: string | undefined

  const currentEnvdVersion = async (): Promise<string> => {
    try {
      known = await fleet.any().sandboxes.envdVersion(AbortSignal.timeout(nodeTimeoutMs))
      return known
    } catch (error) {
      if (known !== undefined) return known
      throw new Fault(
        'unavailable',
        'node_unavailable',
        'The node does not answer, so the version of envd is unknown; try again later',
        { cause: error },
      )
    }
  }
  const read = async (teamId: string, page: TemplatePage): Promise<TemplateView[]> => {
    const listed = await store.list(teamId, page)
    const current = await currentEnvdVersion()
    return listed.map((one) => ({ ...one, envdVersion: one.ready?.envdVersion ?? current }))
  }

  return {
    async get(teamId, id) {
      const [template] = await read(teamId, { order: 'asc', id })
      if (template) return template
      throw new Fault(
        'not_found',
        'template_not_found',
        `Template ${id} was deleted by another request`,
      )
    },
    listAll: (teamId) => read(teamId, { order: 'asc' }),
    async list(teamId, { limit, nextToken }) {
      const after = nextToken === undefined ? undefined : fromToken(nextToken, 'desc')
      // Read one row more than the limit to see whether there is another page.
      const found = await read(teamId, { order: 'desc', limit: limit + 1, after })
      const templates = found.slice(0, limit)
      const last = templates.at(-1)
      if (!last || found.length <= limit) return { templates }
      const position = { startedAt: last.createdAt, id: last.id }
      return { templates, nextToken: toToken(position, 'desc') }
    },
  }
}
