import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { PageQuery } from '../schemas/paging.ts'
import { Text, Timestamp } from '../schemas/text.ts'
import { TeamUser } from '../teams/user.ts'

export const BuildStatus = z.enum(['building', 'waiting', 'ready', 'error', 'uploaded'])

export const Template = z
  .object({
    templateID: z.string(),
    buildID: z.uuid().describe('Last successful build; the zero UUID if there is none'),
    cpuCount: z.int32().min(0).describe('CPU cores of a sandbox; 0 if there is no build'),
    memoryMB: z.int32().min(0).describe('Memory of a sandbox in MiB; 0 if there is no build'),
    diskSizeMB: z.int32().min(0).describe('Disk of a sandbox in MiB'),
    public: z.boolean().describe('Whether every team may use the template'),
    aliases: z.array(z.string()).meta({ deprecated: true }),
    names: z.array(z.string()).describe('`namespace/alias`, or `alias` without a namespace'),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    createdBy: TeamUser.nullable(),
    lastSpawnedAt: Timestamp.nullable().describe('When a sandbox was last created from it'),
    spawnCount: z.int().min(0).describe('Number of sandboxes created from it'),
    buildCount: z.int32().min(0),
    envdVersion: z.string().describe('Version of envd in its sandboxes'),
    buildStatus: BuildStatus.describe('Status of the newest build'),
  })
  .meta({ id: 'Template' })

/** Form from before templates had several names. */
export const TemplateLegacy = Template.omit({ names: true, buildStatus: true }).meta({
  id: 'TemplateLegacy',
})

const TeamQuery = {
  teamID: Text.optional().describe('A team of the caller; by default the team of the credentials'),
}

export const listTemplates = defineOperation({
  id: 'template.list',
  summary: 'List the templates of the team and of the installation, oldest first',
  method: 'GET',
  path: '/templates',
  auth: 'team',
  query: z.object(TeamQuery),
  replies: { 200: { description: 'All templates', body: z.array(Template) } },
  errors: [400, 401, 403, 500, 503],
})

export const listTemplatesV2 = defineOperation({
  id: 'template.listV2',
  summary: 'List the templates of the team and of the installation in pages, newest first',
  method: 'GET',
  path: '/v2/templates',
  auth: 'team',
  query: z.object({ ...TeamQuery, ...PageQuery }),
  replies: {
    200: {
      description: 'One page',
      body: z.array(Template),
      headers: { 'X-Next-Token': 'Present when there is another page' },
    },
  },
  errors: [400, 401, 403, 500, 503],
})

export const deleteTemplate = defineOperation({
  id: 'template.delete',
  summary: 'Delete a template or snapshot of the team',
  method: 'DELETE',
  path: '/templates/{templateID}',
  auth: 'team',
  params: z.object({
    templateID: Text.describe('ID or name, percent-encoded, with an optional tag'),
  }),
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 401, 403, 404, 500],
})

const TemplateParams = z.object({ templateID: Text.describe('ID or name, percent-encoded') })

const TemplateBuild = z
  .object({
    buildID: z.uuid(),
    status: BuildStatus,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    finishedAt: Timestamp.optional(),
    cpuCount: z.int32(),
    memoryMB: z.int32(),
    diskSizeMB: z.int32().optional().describe('Only if the build is ready'),
    envdVersion: z.string().optional().describe('Absent: the version of the node'),
  })
  .meta({ id: 'TemplateBuild' })

export const TemplateWithBuilds = z
  .object({
    ...Template.pick({ templateID: true, public: true, aliases: true, names: true }).shape,
    ...Template.pick({ createdAt: true, updatedAt: true, lastSpawnedAt: true }).shape,
    spawnCount: z.int().min(0),
    builds: z.array(TemplateBuild),
  })
  .meta({ id: 'TemplateWithBuilds' })

export const getTemplate = defineOperation({
  id: 'template.get',
  summary: 'Get a template of the team with its builds in pages, newest first',
  method: 'GET',
  path: '/templates/{templateID}',
  auth: 'team',
  params: TemplateParams,
  query: z.object(PageQuery),
  replies: {
    200: {
      description: 'The template and one page of its builds',
      body: TemplateWithBuilds,
      headers: { 'X-Next-Token': 'Present when there is another page' },
    },
  },
  errors: [400, 401, 403, 404, 500],
})

const TemplateUpdate = z
  .object({ public: z.boolean().optional().describe('Whether every team may use the template') })
  .meta({ id: 'TemplateUpdateRequest' })

export const updateTemplate = defineOperation({
  id: 'template.update',
  summary: 'Publish a template to all teams, or make it private',
  method: 'PATCH',
  path: '/v2/templates/{templateID}',
  auth: 'team',
  params: TemplateParams,
  body: TemplateUpdate,
  replies: {
    200: {
      description: 'Names of the template',
      body: z.object({ names: z.array(z.string()) }).meta({ id: 'TemplateUpdateResponse' }),
    },
  },
  errors: [400, 401, 403, 404, 500],
})

export const updateTemplateV1 = defineOperation({
  id: 'template.updateV1',
  summary:
    'Like `template.update`, but a published template can also be named without its namespace (deprecated)',
  method: 'PATCH',
  path: '/templates/{templateID}',
  auth: 'team',
  params: TemplateParams,
  body: TemplateUpdate,
  replies: { 200: { description: 'Updated' } },
  errors: [400, 401, 403, 404, 409, 500],
})
