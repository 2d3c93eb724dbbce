import { z } from 'zod'
import { CreatedTeamApiKey, KeyName, KeyParams } from './api-keys.ts'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'

/** What operators do. None of it is for clients of a team. */

const limit = (meaning: string) =>
  z.int32().min(1).nullish().describe(`${meaning}; null: as configured`)

const TeamLimits = z
  .object({
    concurrentSandboxes: limit('Sandboxes that may run at a time'),
    maxSandboxSeconds: limit('The longest that a sandbox may run'),
    maxCpuCount: limit('CPU cores of one sandbox'),
    maxMemoryMB: limit('Memory of one sandbox in MiB'),
    maxDiskSizeMB: limit('Disk of one sandbox in MiB'),
    concurrentBuilds: limit('Templates that may be built at a time'),
    keptDiskMB: limit('Disk of its paused sandboxes and snapshots together, in MiB'),
  })
  .meta({ id: 'TeamLimits' })

const TeamName = Text.min(1, { error: 'must not be empty' }).max(128)

const TeamBlock = {
  level: z
    .enum(['blocked', 'banned'])
    .describe('A blocked team may still list, read and delete what it has; a banned one nothing'),
  reason: Text.min(1, { error: 'must not be empty' }).max(500).describe('Shown to the team'),
}

export const AdminTeam = z
  .object({
    teamID: z.uuid(),
    name: z.string(),
    slug: z.string().describe('The namespace of the names of its templates and snapshots'),
    createdAt: Timestamp,
    limits: z
      .object({
        concurrentSandboxes: z.int32(),
        maxSandboxSeconds: z.int32(),
        maxCpuCount: z.int32(),
        maxMemoryMB: z.int32(),
        maxDiskSizeMB: z.int32(),
        concurrentBuilds: z.int32(),
        keptDiskMB: z.int32(),
      })
      .describe('Those in force'),
    block: z
      .object({ ...TeamBlock, since: Timestamp })
      .optional()
      .describe('Absent for a team that may use the platform'),
  })
  .meta({ id: 'AdminTeam' })

const TeamParams = z.object({
  teamID: z.uuid({ error: 'must be a UUID: the `teamID` that GET /admin/teams shows' }),
})

export const createTeam = defineOperation({
  id: 'admin.team.create',
  summary: 'Create a team',
  method: 'POST',
  path: '/admin/teams',
  auth: 'admin',
  body: z.object({ name: TeamName, limits: TeamLimits.optional() }).meta({ id: 'NewTeam' }),
  replies: { 201: { description: 'The new team', body: AdminTeam } },
  errors: [400, 500],
})

export const listAllTeams = defineOperation({
  id: 'admin.team.list',
  summary: 'List all teams',
  method: 'GET',
  path: '/admin/teams',
  auth: 'admin',
  replies: { 200: { description: 'All of them, oldest first', body: z.array(AdminTeam) } },
  errors: [500],
})

export const updateTeam = defineOperation({
  id: 'admin.team.update',
  summary: 'Change the name or limits of a team; what is left out stays',
  method: 'PATCH',
  path: '/admin/teams/{teamID}',
  auth: 'admin',
  params: TeamParams,
  body: z
    .object({ name: TeamName.optional(), limits: TeamLimits.optional() })
    .meta({ id: 'TeamUpdate' }),
  replies: { 200: { description: 'The team as it is now', body: AdminTeam } },
  errors: [400, 404, 500],
})

export const blockTeam = defineOperation({
  id: 'admin.team.block',
  summary: 'Keep a team from using the platform, at once; its sandboxes go on',
  method: 'PUT',
  path: '/admin/teams/{teamID}/block',
  auth: 'admin',
  params: TeamParams,
  body: z.object(TeamBlock).meta({ id: 'NewTeamBlock' }),
  replies: { 200: { description: 'The team as it is now', body: AdminTeam } },
  errors: [400, 404, 500],
})

export const unblockTeam = defineOperation({
  id: 'admin.team.unblock',
  summary: 'Let a team use the platform again, blocked or not',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/block',
  auth: 'admin',
  params: TeamParams,
  replies: { 200: { description: 'The team as it is now', body: AdminTeam } },
  errors: [400, 404, 500],
})

export const addMember = defineOperation({
  id: 'admin.member.add',
  summary: 'Make a person a member of a team; one who is new gets an access token',
  method: 'POST',
  path: '/admin/teams/{teamID}/members',
  auth: 'admin',
  params: TeamParams,
  body: z
    .object({
      email: z
        .email({ error: 'must be an email address' })
        .max(254)
        .transform((email) => email.toLowerCase()),
    })
    .meta({ id: 'NewMember' }),
  replies: {
    201: {
      description: 'They are a member now',
      body: z
        .object({
          userID: z.uuid(),
          email: z.string(),
          accessToken: z
            .string()
            .optional()
            .describe('Only of a person who was unknown before. It is shown this once only'),
        })
        .meta({ id: 'AddedMember' }),
    },
  },
  errors: [400, 404, 500],
})

export const removeMember = defineOperation({
  id: 'admin.member.remove',
  summary: 'Take a person out of a team, at once; API keys they made stay',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/members/{userID}',
  auth: 'admin',
  params: TeamParams.extend({
    userID: z.uuid({ error: 'must be a UUID: the `userID` that adding the member returned' }),
  }),
  replies: { 204: { description: 'They are no member any more' } },
  errors: [400, 404, 500],
})

export const createTeamKey = defineOperation({
  id: 'admin.key.create',
  summary: 'Create an API key for a team',
  method: 'POST',
  path: '/admin/teams/{teamID}/api-keys',
  auth: 'admin',
  params: TeamParams,
  body: KeyName,
  replies: { 201: { description: 'The new key', body: CreatedTeamApiKey } },
  errors: [400, 404, 500],
})

export const deleteTeamKey = defineOperation({
  id: 'admin.key.delete',
  summary: 'Delete an API key of a team; it stops working at once',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/api-keys/{apiKeyID}',
  auth: 'admin',
  params: TeamParams.extend(KeyParams.shape),
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 404, 500],
})

export const killTeamSandboxes = defineOperation({
  id: 'admin.sandbox.killAll',
  summary: 'End all running sandboxes of a team',
  method: 'POST',
  path: '/admin/teams/{teamID}/sandboxes/kill',
  auth: 'admin',
  params: TeamParams,
  replies: {
    200: {
      description: 'What became of them',
      body: z
        .object({ killedCount: z.int(), failedCount: z.int() })
        .meta({ id: 'AdminSandboxKillResult' }),
    },
  },
  errors: [400, 404, 500],
})

export const countRunningSandboxes = defineOperation({
  id: 'admin.sandbox.counts',
  summary: 'How many sandboxes each team runs; teams with none are left out',
  method: 'GET',
  path: '/admin/sandboxes/running-counts',
  auth: 'admin',
  replies: { 200: { description: 'By team id', body: z.record(z.string(), z.int()) } },
  errors: [500],
})
