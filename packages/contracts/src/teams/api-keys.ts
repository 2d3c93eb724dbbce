import { z } from 'zod'
import { defineOperation } from '../operation.ts'
import { Text, Timestamp } from '../schemas/text.ts'
import { TeamUser } from './user.ts'

export const Mask = z
  .object({
    prefix: z.string(),
    valueLength: z.int(),
    maskedValuePrefix: z.string(),
    maskedValueSuffix: z.string(),
  })
  .meta({ id: 'IdentifierMaskingDetails' })

export const TeamApiKey = z
  .object({
    id: z.uuid(),
    name: z.string(),
    mask: Mask,
    createdAt: Timestamp,
    createdBy: TeamUser.nullable(),
    lastUsed: Timestamp.nullable(),
  })
  .meta({ id: 'TeamAPIKey' })

export const CreatedTeamApiKey = TeamApiKey.extend({
  key: z.string().describe('The key, shown only once'),
}).meta({ id: 'CreatedTeamAPIKey' })

export const KeyParams = z.object({
  apiKeyID: z.uuid({ error: 'must be a UUID: the `id` that GET /api-keys shows' }),
})

export const KeyName = z
  .object({ name: Text.min(1, { error: 'must not be empty' }).max(256) })
  .meta({ id: 'APIKeyName' })

export const listKeys = defineOperation({
  id: 'key.list',
  summary: 'List the API keys of the team',
  method: 'GET',
  path: '/api-keys',
  auth: 'team',
  replies: { 200: { description: 'The keys, masked', body: z.array(TeamApiKey) } },
  errors: [401, 500],
})

export const createKey = defineOperation({
  id: 'key.create',
  summary: 'Create an API key for the team',
  method: 'POST',
  path: '/api-keys',
  auth: 'team',
  body: KeyName,
  replies: { 201: { description: 'The new key', body: CreatedTeamApiKey } },
  errors: [400, 401, 500],
})

export const renameKey = defineOperation({
  id: 'key.rename',
  summary: 'Rename an API key',
  method: 'PATCH',
  path: '/api-keys/{apiKeyID}',
  auth: 'team',
  params: KeyParams,
  body: KeyName,
  replies: { 202: { description: 'Renamed' } },
  errors: [400, 401, 404, 500],
})

export const deleteKey = defineOperation({
  id: 'key.delete',
  summary: 'Revoke an API key at once',
  method: 'DELETE',
  path: '/api-keys/{apiKeyID}',
  auth: 'team',
  params: KeyParams,
  replies: { 204: { description: 'Deleted' } },
  errors: [400, 401, 404, 500],
})
