import { assignTags, findAlias, listTags, removeTags } from '@atoll/contracts/templates/tags'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { TemplateTags } from '../../app/templates/template-tags.ts'
import { addTeamRoute } from '../server/route.ts'

export function addTagRoutes(
  server: FastifyInstance,
  { authenticate, tags }: { readonly authenticate: Authenticate; readonly tags: TemplateTags },
): void {
  addTeamRoute(server, assignTags, authenticate, async ({ body }, { teamId }) => {
    const buildID = await tags.assign(teamId, body.target, body.tags)
    return { status: 201, body: { tags: body.tags, buildID } }
  })
  addTeamRoute(server, removeTags, authenticate, async ({ body }, { teamId }) => {
    await tags.remove(teamId, body.name, body.tags)
    return { status: 204 }
  })
  addTeamRoute(server, listTags, authenticate, async ({ params }, { teamId }) => {
    const found = await tags.list(teamId, params.templateID)
    const body = found.map(({ tag, buildId, createdAt }) => ({
      tag,
      buildID: buildId,
      createdAt: createdAt.toISOString(),
    }))
    return { status: 200, body }
  })
  addTeamRoute(server, findAlias, authenticate, async ({ params }, { teamId }) => {
    const template = await tags.find(teamId, params.alias)
    return { status: 200, body: { templateID: template.id, public: template.public } }
  })
}
