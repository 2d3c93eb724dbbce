import { z } from 'zod'
import { CreatedTeamApiKey, KeyName, KeyParams } from './api-keys.ts'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'

/** Operator API for teams. Not available to clients of a team. */

const limit = (meaning: string) =>
  z.int32().min(1).nullish().describe(`${meaning}; null: the configured default`)

const TeamLimits = z
  .object({
    concurrentSandboxes: limit('Limit on concurrent sandboxes'),
    maxSandboxSeconds: limit('Maximum run time of a sandbox in seconds'),
    maxCpuCount: limit('Maximum CPU cores of a sandbox'),
    maxMemoryMB: limit('Maximum memory of a sandbox in MiB'),
    maxDiskSizeMB: limit('Maximum disk of a sandbox in MiB'),
    concurrentBuilds: limit('Limit on concurrent builds'),
    keptDiskMB: limit('Disk quota for templates, paused sandboxes and snapshots together, in MiB'),
  })
  .meta({ id: 'TeamLimits' })

const TeamName = Text.min(1, { error: 'must not be empty' }).max(128)

const TeamBlock = {
  level: z
    .enum(['blocked', 'banned'])
    .describe(
      'A blocked team may still list, read and delete its resources; a banned team may do nothing',
    ),
  reason: Text.min(1, { error: 'must not be empty' }).max(500).describe('Shown to the team'),
}

export const AdminTeam = z
  .object({
    teamID: z.uuid(),
    name: z.string(),
    slug: z.string().describe('Namespace of its template and snapshot names'),
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
      .describe('Limits in force, configured defaults included'),
    block: z
      .object({ ...TeamBlock, since: Timestamp })
      .optional()
      .describe('Absent if the team is not blocked'),
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
  replies: { 200: { description: 'All teams, oldest first', body: z.array(AdminTeam) } },
  errors: [500],
})

export const updateTeam = defineOperation({
  id: 'admin.team.update',
  summary: 'Change the name or limits of a team; omitted properties stay unchanged',
  method: 'PATCH',
  path: '/admin/teams/{teamID}',
  auth: 'admin',
  params: TeamParams,
  body: z
    .object({ name: TeamName.optional(), limits: TeamLimits.optional() })
    .meta({ id: 'TeamUpdate' }),
  replies: { 200: { description: 'The updated team', body: AdminTeam } },
  errors: [400, 404, 500],
})

export const blockTeam = defineOperation({
  id: 'admin.team.block',
  summary: 'Block a team from the platform at once; its sandboxes keep running',
  method: 'PUT',
  path: '/admin/teams/{teamID}/block',
  auth: 'admin',
  params: TeamParams,
  body: z.object(TeamBlock).meta({ id: 'NewTeamBlock' }),
  replies: { 200: { description: 'The updated team', body: AdminTeam } },
  errors: [400, 404, 500],
})

export const unblockTeam = defineOperation({
  id: 'admin.team.unblock',
  summary: 'Unblock a team; succeeds if the team is not blocked',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/block',
  auth: 'admin',
  params: TeamParams,
  replies: { 200: { description: 'The updated team', body: AdminTeam } },
  errors: [400, 404, 500],
})

export const addMember = defineOperation({
  id: 'admin.member.add',
  summary: 'Add a user to a team; creates unknown users, with an access token',
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
      description: 'The user is a member',
      body: z
        .object({
          userID: z.uuid(),
          email: z.string(),
          accessToken: z
            .string()
            .optional()
            .describe('Only for a user created by this request, shown only once'),
        })
        .meta({ id: 'AddedMember' }),
    },
  },
  errors: [400, 404, 500],
})

export const removeMember = defineOperation({
  id: 'admin.member.remove',
  summary: 'Remove a user from a team at once; API keys that they created stay valid',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/members/{userID}',
  auth: 'admin',
  params: TeamParams.extend({
    userID: z.uuid({ error: 'must be a UUID: the `userID` that adding the member returned' }),
  }),
  replies: { 204: { description: 'The user is no longer a member' } },
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
  summary: 'Revoke an API key of a team at once',
  method: 'DELETE',
  path: '/admin/teams/{teamID}/api-keys/{apiKeyID}',
  auth: 'admin',
  params: TeamParams.extend(KeyParams.shape),
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 404, 500],
})

export const killTeamSandboxes = defineOperation({
  id: 'admin.sandbox.killAll',
  summary: 'Kill all running sandboxes of a team',
  method: 'POST',
  path: '/admin/teams/{teamID}/sandboxes/kill',
  auth: 'admin',
  params: TeamParams,
  replies: {
    200: {
      description: 'Number of killed and failed sandboxes',
      body: z
        .object({ killedCount: z.int(), failedCount: z.int() })
        .meta({ id: 'AdminSandboxKillResult' }),
    },
  },
  errors: [400, 404, 500],
})

export const countRunningSandboxes = defineOperation({
  id: 'admin.sandbox.counts',
  summary: 'Count the running sandboxes of each team; teams without any are omitted',
  method: 'GET',
  path: '/admin/sandboxes/running-counts',
  auth: 'admin',
  replies: { 200: { description: 'Counts by team ID', body: z.record(z.string(), z.int()) } },
  errors: [500],
})
