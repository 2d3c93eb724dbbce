import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Template } from '../templates/manage.ts'
import { Text } from '../schemas/text.ts'

/** Builds from a Dockerfile. They need no files besides its text, so they start at once. */

const DockerfileBuild = z
  .object({
    dockerfile: Text.describe(
      'Text of a single-stage Dockerfile that copies no files. FROM is `base`, a template that the team may use, or else an image of a registry',
    ),
    alias: Text.optional().describe(
      '`[namespace/]alias[:tag]`; without an alias the template has only its ID',
    ),
    teamID: Text.optional().describe(
      'A team of the caller; by default the team of the credentials',
    ),
    startCmd: Text.optional().describe('Replaces ENTRYPOINT and CMD'),
    readyCmd: Text.optional().describe('Command that succeeds once a sandbox is ready'),
    cpuCount: z.int32().min(1).optional().describe('CPU cores of a sandbox; 2 by default'),
    memoryMB: z.int32().min(128).optional().describe('Memory of a sandbox in MiB; 1024 by default'),
  })
  .meta({ id: 'TemplateBuildRequest' })

export const buildDockerfile = defineOperation({
  id: 'template.buildDockerfile',
  summary: 'Build a template from a Dockerfile',
  method: 'POST',
  path: '/templates',
  auth: 'team',
  body: DockerfileBuild,
  replies: { 202: { description: 'The build has started', body: Template } },
  errors: [400, 401, 403, 404, 409, 500, 503],
})

export const rebuildDockerfile = defineOperation({
  id: 'template.rebuildDockerfile',
  summary: 'Rebuild a template of the team from a Dockerfile',
  method: 'POST',
  path: '/templates/{templateID}',
  auth: 'team',
  params: z.object({ templateID: Text.describe('ID or name, percent-encoded') }),
  body: DockerfileBuild.omit({ alias: true, teamID: true }).meta({ id: 'TemplateRebuildRequest' }),
  replies: { 202: { description: 'The build has started', body: Template } },
  errors: [400, 401, 403, 404, 500, 503],
})
