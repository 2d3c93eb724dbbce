import { randomUUID } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { apiKeyPrefix, newSecret } from '../../domain/teams/key.ts'
import type { ApiKey, KeyStore } from '../../domain/teams/key.ts'
import type { Caller } from '../../domain/teams/team.ts'

export interface Keys {
  list(teamId: string): Promise<ApiKey[]>
  /** Returns the key value; no later call can read it again. */
  create(caller: Caller, name: string): Promise<{ readonly key: ApiKey; readonly value: string }>
  rename(teamId: string, id: string, name: string): Promise<void>
  delete(teamId: string, id: string): Promise<void>
}

export function createKeys({ store, clock }: { store: KeyStore; clock: Clock }): Keys {
  return {
    list: (teamId) => store.list(teamId),
    async create({ teamId, user }, name) {
      const { value, hash, mask } = newSecret(apiKeyPrefix)
      const key: ApiKey = {
        id: randomUUID(),
        teamId,
        name,
        mask,
        createdAt: clock.now(),
        createdBy: user,
        lastUsedAt: undefined,
      }
      await store.insert(key, hash)
      return { key, value }
    },
    async rename(teamId, id, name) {
      if (!(await store.rename(teamId, id, name))) throw absentKey(id)
    },
    async delete(teamId, id) {
      if (!(await store.delete(teamId, id))) throw absentKey(id)
    },
  }
}

function absentKey(id: string): Fault {
  return new Fault(
    'not_found',
    'api_key_not_found',
    `API key ${id} was not found: GET /api-keys lists the keys of your team`,
  )
}
