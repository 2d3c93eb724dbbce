import { buildDockerfile, rebuildDockerfile } from '@atoll/contracts/builds/dockerfile'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { BuildDockerfile, DockerfileRequest } from '../../app/builds/build-dockerfile.ts'
import type { SelectTeam } from '../../app/teams/select-team.ts'
import type { Templates } from '../../app/templates/templates.ts'
import { addTeamRoute } from '../server/route.ts'
import { toRequestedView } from '../templates/template-view.ts'

interface DockerfileRoutes {
  readonly authenticate: Authenticate
  readonly selectTeam: SelectTeam
  readonly build: BuildDockerfile
  readonly templates: Templates
}

export function addDockerfileRoutes(server: FastifyInstance, routes: DockerfileRoutes): void {
  const { authenticate, selectTeam, build, templates } = routes
  const answer = async (request: DockerfileRequest) => {
    const started = await build(request)
    const template = await templates.get(request.teamId, started.templateId)
    return { status: 202, body: toRequestedView(template, started) }
  }
  addTeamRoute(server, buildDockerfile, authenticate, async ({ body }, caller) => {
    const teamId = await selectTeam(caller, body.teamID, buildDockerfile)
    const of = body.alias === undefined ? undefined : { name: body.alias }
    return answer({ ...toRequest(body), teamId, userId: caller.user?.id, of })
  })
  addTeamRoute(server, rebuildDockerfile, authenticate, async ({ params, body }, caller) => {
    const { teamId, user } = caller
    const of = { templateId: params.templateID }
    return answer({ ...toRequest(body), teamId, userId: user?.id, of })
  })
}

function toRequest(body: z.output<typeof rebuildDockerfile.body>) {
  const { dockerfile, startCmd, readyCmd, cpuCount, memoryMB } = body
  return {
    dockerfile,
    startCommand: startCmd,
    readyCommand: readyCmd,
    cpuCount,
    memoryMb: memoryMB,
  }
}
