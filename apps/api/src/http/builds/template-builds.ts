import {
  findBuildFiles,
  requestBuild,
  requestBuildV2,
  startBuild,
} from '@atoll/contracts/builds/request'
import { Fault } from '@atoll/kit/fault'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { BuildFileTransfer } from '../../app/builds/build-files.ts'
import type { RequestBuild } from '../../app/builds/request-build.ts'
import type { SelectTeam } from '../../app/teams/select-team.ts'
import type { StartBuild } from '../../app/builds/start-build.ts'
import type { Templates } from '../../app/templates/templates.ts'
import type { ImageLogin, Recipe } from '../../domain/builds/recipe.ts'
import type { Caller } from '../../domain/teams/team.ts'
import { nameOf } from '../../domain/template.ts'
import { toUploadUrl } from './build-files.ts'
import { addTeamRoute } from '../server/route.ts'
import { toRequestedView } from '../templates/template-view.ts'

interface BuildRoutes {
  readonly authenticate: Authenticate
  readonly selectTeam: SelectTeam
  readonly request: RequestBuild
  readonly start: StartBuild
  readonly files: BuildFileTransfer
  readonly templates: Templates
}

export function addBuildRoutes(server: FastifyInstance, routes: BuildRoutes): void {
  const { authenticate, selectTeam, request, start, files, templates } = routes
  addTeamRoute(server, requestBuild, authenticate, async ({ body }, caller) => {
    const teamId = await selectTeam(caller, body.teamID, requestBuild)
    const build = await request({
      ...toRequest(caller, teamId, body),
      of: { name: body.name ?? body.alias ?? '' },
      tags: body.tags ?? [],
      diskSizeMb: body.minFreeDiskMb,
    })
    const view = {
      templateID: build.templateId,
      buildID: build.id,
      public: build.public,
      names: build.names.map(nameOf),
      tags: build.tags,
      aliases: build.names.map(({ alias }) => alias),
    }
    return { status: 202, body: view }
  })
  addTeamRoute(server, requestBuildV2, authenticate, async ({ body }, caller) => {
    const teamId = await selectTeam(caller, body.teamID, requestBuildV2)
    const of = { name: body.alias }
    const build = await request({ ...toRequest(caller, teamId, body), of })
    const template = await templates.get(teamId, build.templateId)
    return { status: 202, body: toRequestedView(template, build) }
  })
  addTeamRoute(server, findBuildFiles, authenticate, async (call, { teamId }) => {
    const { templateID, hash } = call.params
    const { present, permit } = await files.find(teamId, templateID, hash)
    return { status: 201, body: { present, url: toUploadUrl(call.origin, permit) } }
  })
  addTeamRoute(server, startBuild, authenticate, async ({ params, body }, { teamId }) => {
    const { templateID: templateId, buildID: buildId } = params
    await start({ teamId, templateId, buildId }, toRecipe(body))
    return { status: 202 }
  })
}

function toRequest(
  { user }: Caller,
  teamId: string,
  body: { readonly cpuCount?: number | undefined; readonly memoryMB?: number | undefined },
) {
  const { cpuCount, memoryMB: memoryMb } = body
  return { teamId, userId: user?.id, tags: [], cpuCount, memoryMb, diskSizeMb: undefined }
}

/** Clients send an empty string for an unset field. */
function toRecipe(body: z.output<typeof startBuild.body>): Recipe {
  const { fromImage, fromTemplate, force = false, steps = [], startCmd, readyCmd } = body
  const imageLogin = body.fromImageRegistry && toLogin(body.fromImageRegistry)
  return {
    ...(fromImage && { fromImage }),
    ...(imageLogin && { imageLogin }),
    ...(fromTemplate && { fromTemplate }),
    force,
    steps: steps.map(({ type, args = [], filesHash, force: anew = false }) => ({
      type,
      args,
      ...(filesHash !== undefined && { filesHash }),
      force: anew,
    })),
    ...(startCmd && { startCommand: startCmd }),
    ...(readyCmd && { readyCommand: readyCmd }),
  }
}

type Body = z.output<typeof startBuild.body>

function toLogin(given: NonNullable<Body['fromImageRegistry']>): ImageLogin {
  if (given.type === 'registry') return { username: given.username, password: given.password }
  if (given.type === 'gcp') return { username: '_json_key', password: given.serviceAccountJson }
  throw new Fault(
    'invalid',
    'registry_login_not_supported',
    'fromImageRegistry: aws is not supported here; send type "registry" with the username AWS and the password that `aws ecr get-login-password` prints',
  )
}
