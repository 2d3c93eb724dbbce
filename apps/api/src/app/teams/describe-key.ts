import { apiKeyPrefix, hashSecret, looksLike } from '../../domain/teams/key.ts'
import type { KeyStore } from '../../domain/teams/key.ts'
import type { TeamLimits } from '../../domain/teams/limits.ts'
import type { TeamStore } from '../../domain/teams/team.ts'
import type { LimitsOf } from './limits.ts'

export interface KeyDescription {
  readonly keyId: string
  readonly teamId: string
  readonly teamName: string
  readonly limits: TeamLimits
}

/** Returns ID, team and limits of an API key, or undefined if there is no such key. The dashboard signs in with it. */
export type DescribeKey = (apiKey: string) => Promise<KeyDescription | undefined>

export function createDescribeKey(ports: {
  readonly keys: Pick<KeyStore, 'findByHash'>
  readonly teams: Pick<TeamStore, 'find'>
  readonly limitsOf: LimitsOf
}): DescribeKey {
  return async (apiKey) => {
    if (!looksLike(apiKeyPrefix, apiKey)) return undefined
    const key = await ports.keys.findByHash(hashSecret(apiKey))
    const team = key && (await ports.teams.find(key.teamId))
    if (!key || !team) return undefined
    const limits = await ports.limitsOf(team.id)
    return { keyId: key.id, teamId: team.id, teamName: team.name, limits }
  }
}
