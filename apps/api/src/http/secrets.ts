import {
  createSecret,
  deleteSecret,
  getSecret,
  listSecrets,
  updateSecret,
} from '@atoll/contracts/secrets'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../app/teams/auth.ts'
import type { Secrets } from '../app/secrets/secrets.ts'
import type { Secret } from '../domain/secret.ts'
import { addTeamRoute } from './server/route.ts'

const headers = { 'Cache-Control': 'no-store' }

export function addSecretRoutes(
  server: FastifyInstance,
  { authenticate, secrets }: { readonly authenticate: Authenticate; readonly secrets: Secrets },
): void {
  addTeamRoute(server, listSecrets, authenticate, async ({ query }, { teamId }) => {
    const { limit, nextToken } = query
    const page = await secrets.list(teamId, { limit, nextToken })
    const next = page.nextToken !== undefined && { 'X-Next-Token': page.nextToken }
    return { status: 200, body: page.secrets.map(toSecretView), headers: { ...headers, ...next } }
  })
  addTeamRoute(server, createSecret, authenticate, async ({ body }, { teamId }) => {
    const { name, value, metadata } = body
    const secret = await secrets.create(teamId, { name, value, metadata })
    return { status: 201, body: toSecretView(secret), headers }
  })
  addTeamRoute(server, getSecret, authenticate, async ({ params }, { teamId }) => ({
    status: 200,
    body: toSecretView(await secrets.get(teamId, params.secretID)),
    headers,
  }))
  addTeamRoute(server, updateSecret, authenticate, async ({ params, body }, { teamId }) => {
    const { value, metadata } = body
    const secret = await secrets.update(teamId, params.secretID, { value, metadata })
    return { status: 200, body: toSecretView(secret), headers }
  })
  addTeamRoute(server, deleteSecret, authenticate, async ({ params }, { teamId }) => {
    await secrets.delete(teamId, params.secretID)
    return { status: 204, headers }
  })
}

function toSecretView({ id, name, version, metadata, createdAt, updatedAt }: Secret) {
  return {
    secretID: id,
    name,
    currentVersion: version,
    metadata: { ...metadata },
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}
