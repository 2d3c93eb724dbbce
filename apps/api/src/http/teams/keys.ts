import { createKey, deleteKey, listKeys, renameKey } from '@atoll/contracts/teams/api-keys'
import type { TeamApiKey } from '@atoll/contracts/teams/api-keys'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { Keys } from '../../app/teams/keys.ts'
import type { ApiKey } from '../../domain/teams/key.ts'
import { addTeamRoute } from '../server/route.ts'

export function addKeyRoutes(
  server: FastifyInstance,
  { authenticate, keys }: { readonly authenticate: Authenticate; readonly keys: Keys },
): void {
  addTeamRoute(server, listKeys, authenticate, async (_call, { teamId }) => ({
    status: 200,
    body: (await keys.list(teamId)).map(toKeyView),
  }))
  addTeamRoute(server, createKey, authenticate, async ({ body }, caller) => {
    const { key, value } = await keys.create(caller, body.name)
    return { status: 201, body: { ...toKeyView(key), key: value } }
  })
  addTeamRoute(server, renameKey, authenticate, async ({ params, body }, { teamId }) => {
    await keys.rename(teamId, params.apiKeyID, body.name)
    return { status: 202 }
  })
  addTeamRoute(server, deleteKey, authenticate, async ({ params }, { teamId }) => {
    await keys.delete(teamId, params.apiKeyID)
    return { status: 204 }
  })
}

export function toKeyView(key: ApiKey): z.infer<typeof TeamApiKey> {
  return {
    id: key.id,
    name: key.name,
    mask: { ...key.mask },
    createdAt: key.createdAt.toISOString(),
    createdBy: key.createdBy ?? null,
    lastUsed: key.lastUsedAt?.toISOString() ?? null,
  }
}
