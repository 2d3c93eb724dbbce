import {
  deleteTemplate,
  getTemplate,
  listTemplates,
  listTemplatesV2,
  updateTemplate,
  updateTemplateV1,
} from '@atoll/contracts/templates/manage'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { DeleteTemplate } from '../../app/templates/delete-template.ts'
import type { OwnTemplates, TemplateWithBuilds } from '../../app/templates/own-templates.ts'
import type { Templates } from '../../app/templates/templates.ts'
import type { SelectTeam } from '../../app/teams/select-team.ts'
import type { Build } from '../../domain/builds/build.ts'
import { nameOf } from '../../domain/template.ts'
import { addTeamRoute } from '../server/route.ts'
import { toTemplateView } from './template-view.ts'

interface TemplateRoutes {
  readonly authenticate: Authenticate
  readonly templates: Templates
  readonly own: OwnTemplates
  readonly selectTeam: SelectTeam
  readonly remove: DeleteTemplate
}

export function addTemplateRoutes(server: FastifyInstance, routes: TemplateRoutes): void {
  const { authenticate, templates, own, selectTeam } = routes
  addTeamRoute(server, listTemplates, authenticate, async ({ query }, caller) => {
    const teamId = await selectTeam(caller, query.teamID, listTemplates)
    return { status: 200, body: (await templates.listAll(teamId)).map(toTemplateView) }
  })
  addTeamRoute(server, listTemplatesV2, authenticate, async ({ query }, caller) => {
    const { teamID, limit, nextToken: given } = query
    const teamId = await selectTeam(caller, teamID, listTemplatesV2)
    const page = await templates.list(teamId, { limit, nextToken: given })
    const { nextToken } = page
    return {
      status: 200,
      body: page.templates.map(toTemplateView),
      ...(nextToken !== undefined && { headers: { 'X-Next-Token': nextToken } }),
    }
  })
  addTeamRoute(server, getTemplate, authenticate, async ({ params, query }, { teamId }) => {
    const { limit, nextToken: given } = query
    const found = await own.get(teamId, params.templateID, { limit, nextToken: given })
    const { nextToken } = found
    return {
      status: 200,
      body: toDetail(found),
      ...(nextToken !== undefined && { headers: { 'X-Next-Token': nextToken } }),
    }
  })
  addTeamRoute(server, updateTemplate, authenticate, async ({ params, body }, { teamId }) => {
    const change = { public: body.public, bare: false }
    const names = await own.update(teamId, params.templateID, change)
    return { status: 200, body: { names: names.map(nameOf) } }
  })
  addTeamRoute(server, updateTemplateV1, authenticate, async ({ params, body }, { teamId }) => {
    await own.update(teamId, params.templateID, { public: body.public, bare: true })
    return { status: 200 }
  })
  addTeamRoute(server, deleteTemplate, authenticate, async ({ params }, { teamId }) => {
    await routes.remove(teamId, params.templateID)
    return { status: 204 }
  })
}

function toDetail({ template, builds }: TemplateWithBuilds) {
  return {
    templateID: template.id,
    public: template.public,
    aliases: template.names.map(({ alias }) => alias),
    names: template.names.map(nameOf),
    createdAt: template.createdAt.toISOString(),
    updatedAt: template.updatedAt.toISOString(),
    lastSpawnedAt: template.lastSpawnedAt?.toISOString() ?? null,
    spawnCount: template.spawnCount,
    builds: builds.map(toBuildView),
  }
}

function toBuildView(build: Build) {
  const { id, status, resources, createdAt, updatedAt, finishedAt, envdVersion } = build
  return {
    buildID: id,
    status,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    ...(finishedAt && { finishedAt: finishedAt.toISOString() }),
    cpuCount: resources.cpuCount,
    memoryMB: resources.memoryMb,
    ...(status === 'ready' && { diskSizeMB: resources.diskSizeMb }),
    ...(envdVersion !== undefined && { envdVersion }),
  }
}
