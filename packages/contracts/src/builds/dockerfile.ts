import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Template } from '../templates/manage.ts'
import { Text } from '../schemas/text.ts'

/** Templates of a Dockerfile: its text is all that there is, so the build begins at once. */

const DockerfileBuild = z
  .object({
    dockerfile: Text.describe('The text of a Dockerfile of one stage that copies no files'),
    alias: Text.optional().describe('`[namespace/]alias[:tag]`; without one it has its id alone'),
    teamID: Text.optional().describe('A team of the caller; without it, the team that asks'),
    startCmd: Text.optional().describe('In place of ENTRYPOINT and CMD'),
    readyCmd: Text.optional().describe('Succeeds once a sandbox is ready'),
    cpuCount: z.int32().min(1).optional().describe('CPU cores of a sandbox; 2 by default'),
    memoryMB: z.int32().min(128).optional().describe('Memory of it in MiB; 1024 by default'),
  })
  .meta({ id: 'TemplateBuildRequest' })

export const buildDockerfile = defineOperation({
  id: 'template.buildDockerfile',
  summary: 'Build a template of a Dockerfile',
  method: 'POST',
  path: '/templates',
  auth: 'team',
  body: DockerfileBuild,
  replies: { 202: { description: 'The build is under way', body: Template } },
  errors: [400, 401, 403, 409, 500, 503],
})

export const rebuildDockerfile = defineOperation({
  id: 'template.rebuildDockerfile',
  summary: 'Build a template of the team anew, of a Dockerfile',
  method: 'POST',
  path: '/templates/{templateID}',
  auth: 'team',
  params: z.object({ templateID: Text.describe('An id or a name, percent-encoded') }),
  body: DockerfileBuild.omit({ alias: true, teamID: true }).meta({ id: 'TemplateRebuildRequest' }),
  replies: { 202: { description: 'The build is under way', body: Template } },
  errors: [400, 401, 403, 404, 500, 503],
})
