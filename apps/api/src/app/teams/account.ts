import { randomUUID } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { accessTokenPrefix, newSecret } from '../../domain/teams/key.ts'
import type {
  AccessToken,
  AccessTokenStore,
  Team,
  TeamStore,
  User,
} from '../../domain/teams/team.ts'
import type { Keys } from './keys.ts'

export interface Account {
  /** Lists the user's teams and creates a new API key for each: the CLI login needs one per team. */
  listTeams(user: User): Promise<readonly { team: Team; apiKey: string; isDefault: boolean }[]>
  /** Returns the token value; no later call can read it again. */
  createToken(
    user: User,
    name: string,
  ): Promise<{ readonly token: AccessToken; readonly value: string }>
  deleteToken(user: User, id: string): Promise<void>
}

const loginKeyName = 'CLI login'

export function createAccount(deps: {
  readonly teams: TeamStore
  readonly tokens: AccessTokenStore
  readonly keys: Keys
  readonly clock: Clock
}): Account {
  const { teams, tokens, keys, clock } = deps
  return {
    async listTeams({ id, email, defaultTeamId }) {
      const found = []
      for (const team of await teams.listOfUser(id)) {
        const made = await keys.create({ teamId: team.id, user: { id, email } }, loginKeyName)
        found.push({ team, apiKey: made.value, isDefault: team.id === defaultTeamId })
      }
      return found
    },
    async createToken(user, name) {
      const { value, hash, mask } = newSecret(accessTokenPrefix)
      const id = randomUUID()
      const token: AccessToken = { id, userId: user.id, name, mask, createdAt: clock.now() }
      await tokens.insert(token, hash)
      return { token, value }
    },
    async deleteToken(user, id) {
      if (await tokens.delete(user.id, id)) return
      throw new Fault(
        'not_found',
        'access_token_not_found',
        `You have no access token ${id}: check the id that POST /access-tokens returned`,
      )
    },
  }
}
