import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { PageQuery } from './paging.ts'
import { Text, Timestamp } from './text.ts'
import { TeamUser } from './user.ts'

const buildStatuses = ['building', 'waiting', 'ready', 'error', 'uploaded'] as const

export const Template = z
  .object({
    templateID: z.string(),
    buildID: z.uuid().describe('The last successful build; the zero UUID while there is none'),
    cpuCount: z.int32().min(0).describe('CPU cores of a sandbox; 0 while there is no build'),
    memoryMB: z.int32().min(0).describe('Memory of a sandbox in MiB; 0 while there is no build'),
    diskSizeMB: z.int32().min(0).describe('Disk of a sandbox in MiB'),
    public: z.boolean().describe('Whether every team may use it'),
    aliases: z.array(z.string()).meta({ deprecated: true }),
    names: z.array(z.string()).describe('As `namespace/alias` where they have a namespace'),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    createdBy: TeamUser.nullable(),
    lastSpawnedAt: Timestamp.nullable().describe('When a sandbox was last made of it'),
    spawnCount: z.int().min(0).describe('How many sandboxes were made of it'),
    buildCount: z.int32().min(0),
    envdVersion: z.string().describe('The version of envd in its sandboxes'),
    buildStatus: z.enum(buildStatuses).describe('Of the newest build'),
  })
  .meta({ id: 'Template' })

const TeamQuery = {
  teamID: Text.optional().describe('A team of the caller; without it, the team that asks'),
}

export const listTemplates = defineOperation({
  id: 'template.list',
  summary: 'List the templates of the team and of the installation, oldest first',
  method: 'GET',
  path: '/templates',
  auth: 'team',
  query: z.object(TeamQuery),
  replies: { 200: { description: 'All of them', body: z.array(Template) } },
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
  summary: 'Delete a template or a snapshot of the team, which no sandbox may use any more',
  method: 'DELETE',
  path: '/templates/{templateID}',
  auth: 'team',
  params: z.object({
    templateID: Text.describe('An id or a name, percent-encoded, with or without a tag'),
  }),
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 401, 403, 404, 500],
})
