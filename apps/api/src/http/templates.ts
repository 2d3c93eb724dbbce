import { deleteTemplate, listTemplates, listTemplatesV2 } from '@atoll/contracts/templates'
import type { Template } from '@atoll/contracts/templates'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../app/auth.ts'
import type { DeleteTemplate } from '../app/delete-template.ts'
import type { Templates, TemplateView } from '../app/templates.ts'
import type { SelectTeam } from '../app/select-team.ts'
import { addTeamRoute } from './route.ts'

interface TemplateRoutes {
  readonly authenticate: Authenticate
  readonly templates: Templates
  readonly selectTeam: SelectTeam
  readonly remove: DeleteTemplate
}

export function addTemplateRoutes(server: FastifyInstance, routes: TemplateRoutes): void {
  const { authenticate, templates, selectTeam } = routes
  addTeamRoute(server, listTemplates, authenticate, async ({ query }, caller) => {
    const teamId = await selectTeam(caller, query.teamID, listTemplates)
    return { status: 200, body: (await templates.listAll(teamId)).map(toView) }
  })
  addTeamRoute(server, listTemplatesV2, authenticate, async ({ query }, caller) => {
    const { teamID, limit, nextToken: given } = query
    const teamId = await selectTeam(caller, teamID, listTemplatesV2)
    const page = await templates.list(teamId, { limit, nextToken: given })
    const { nextToken } = page
    return {
      status: 200,
      body: page.templates.map(toView),
      ...(nextToken !== undefined && { headers: { 'X-Next-Token': nextToken } }),
    }
  })
  addTeamRoute(server, deleteTemplate, authenticate, async ({ params }, { teamId }) => {
    await routes.remove(teamId, params.templateID)
    return { status: 204 }
  })
}

/** Stands for the build of a template that has none yet. */
const noBuild = {
  id: '00000000-0000-0000-0000-000000000000',
  resources: { cpuCount: 0, memoryMb: 0, diskSizeMb: 0 },
}

function toView(template: TemplateView): z.infer<typeof Template> {
  const { id: buildID, resources } = template.ready ?? noBuild
  return {
    templateID: template.id,
    buildID,
    cpuCount: resources.cpuCount,
    memoryMB: resources.memoryMb,
    diskSizeMB: resources.diskSizeMb,
    public: template.public,
    aliases: template.names.map(({ alias }) => alias),
    names: template.names.map(({ namespace, alias }) =>
      namespace === undefined ? alias : `${namespace}/${alias}`,
    ),
    createdAt: template.createdAt.toISOString(),
    updatedAt: template.updatedAt.toISOString(),
    createdBy: template.createdBy ?? null,
    lastSpawnedAt: template.lastSpawnedAt?.toISOString() ?? null,
    spawnCount: template.spawnCount,
    buildCount: template.buildCount,
    envdVersion: template.envdVersion,
    buildStatus: template.buildStatus,
  }
}
