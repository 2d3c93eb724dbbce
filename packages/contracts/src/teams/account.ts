import { z } from 'zod'
import { Mask } from './api-keys.ts'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'

/** Operations of a user on their own account. */

const UserTeam = z
  .object({
    teamID: z.uuid(),
    name: z.string(),
    apiKey: z.string().describe('A new API key of this team, shown only once'),
    isDefault: z.boolean().describe('Whether requests without a team use this one'),
  })
  .meta({ id: 'Team' })

export const listTeams = defineOperation({
  id: 'team.list',
  summary: 'List the teams of the user, with a new API key for each',
  method: 'GET',
  path: '/teams',
  auth: 'user',
  replies: { 200: { description: 'The teams', body: z.array(UserTeam) } },
  errors: [500],
})

const CreatedAccessToken = z
  .object({
    id: z.uuid(),
    name: z.string(),
    token: z.string().describe('The token, shown only once'),
    mask: Mask,
    createdAt: Timestamp,
  })
  .meta({ id: 'CreatedAccessToken' })

export const createAccessToken = defineOperation({
  id: 'accessToken.create',
  summary: 'Create an access token for the user',
  method: 'POST',
  path: '/access-tokens',
  auth: 'user',
  body: z
    .object({ name: Text.min(1, { error: 'must not be empty' }).max(256) })
    .meta({ id: 'NewAccessToken' }),
  replies: { 201: { description: 'The new token', body: CreatedAccessToken } },
  errors: [400, 500],
})

export const deleteAccessToken = defineOperation({
  id: 'accessToken.delete',
  summary: 'Revoke an access token of the user at once',
  method: 'DELETE',
  path: '/access-tokens/{accessTokenID}',
  auth: 'user',
  params: z.object({
    accessTokenID: z.uuid({ error: 'must be a UUID: the `id` that POST /access-tokens returned' }),
  }),
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 404, 500],
})
