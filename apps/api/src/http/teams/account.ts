import { createAccessToken, deleteAccessToken, listTeams } from '@atoll/contracts/teams/account'
import type { FastifyInstance } from 'fastify'
import type { Account } from '../../app/teams/account.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import { addUserRoute } from '../server/route.ts'

export function addAccountRoutes(
  server: FastifyInstance,
  { authenticate, account }: { readonly authenticate: Authenticate; readonly account: Account },
): void {
  addUserRoute(server, listTeams, authenticate, async (_call, user) => {
    const found = await account.listTeams(user)
    const body = found.map(({ team, apiKey, isDefault }) => ({
      teamID: team.id,
      name: team.name,
      apiKey,
      isDefault,
    }))
    return { status: 200, body }
  })
  addUserRoute(server, createAccessToken, authenticate, async ({ body }, user) => {
    const { token, value } = await account.createToken(user, body.name)
    const { id, name, mask, createdAt } = token
    return {
      status: 201,
      body: { id, name, token: value, mask, createdAt: createdAt.toISOString() },
    }
  })
  addUserRoute(server, deleteAccessToken, authenticate, async ({ params }, user) => {
    await account.deleteToken(user, params.accessTokenID)
    return { status: 204 }
  })
}
