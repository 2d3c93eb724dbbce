import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { accessTokenPrefix, apiKeyPrefix, hashSecret, looksLike } from '../domain/key.ts'
import type { KeyStore } from '../domain/key.ts'
import type { Caller, TeamStore } from '../domain/team.ts'

export interface Credentials {
  readonly apiKey: string | undefined
  /** What follows `Bearer`. */
  readonly bearer: string | undefined
}

/** Finds out on whose behalf a request acts. The store is asked each time: a deleted key is refused at once. */
export type Authenticate = (credentials: Credentials) => Promise<Caller>

const useIntervalMs = 60_000

export function createAuthenticate(deps: {
  readonly keys: KeyStore
  readonly teams: TeamStore
  readonly clock: Clock
  readonly log: Logger
}): Authenticate {
  const { keys, teams, clock, log } = deps
  const lastRecorded = new Map<string, number>()

  /** Off the path of the request, and at most once a minute for each key. */
  const recordUse = (id: string) => {
    const now = clock.now()
    if (now.getTime() - (lastRecorded.get(id) ?? -Infinity) < useIntervalMs) return
    lastRecorded.set(id, now.getTime())
    keys.recordUse(id, now).catch((error: unknown) => {
      log.warn({ err: error }, 'the use of a key could not be recorded')
    })
  }

  return async ({ apiKey, bearer }) => {
    if (apiKey !== undefined) {
      const key = looksLike(apiKeyPrefix, apiKey) && (await keys.findByHash(hashSecret(apiKey)))
      if (!key) throw unauthenticated('The API key in X-API-Key is not valid', apiKeyPrefix)
      recordUse(key.id)
      return { teamId: key.teamId }
    }
    if (bearer !== undefined) {
      const user =
        looksLike(accessTokenPrefix, bearer) &&
        (await teams.findUserByTokenHash(hashSecret(bearer)))
      if (!user) {
        throw unauthenticated('The access token in Authorization is not valid', accessTokenPrefix)
      }
      return { teamId: user.defaultTeamId, user: { id: user.id, email: user.email } }
    }
    throw new Fault(
      'unauthenticated',
      'credentials_missing',
      'Credentials are missing: send an API key as `X-API-Key: e2b_…` or an access token as `Authorization: Bearer sk_e2b_…`',
    )
  }
}

function unauthenticated(what: string, prefix: string): Fault {
  return new Fault(
    'unauthenticated',
    'credentials_invalid',
    `${what}: it must be one that exists, ${prefix} and 40 hexadecimal digits`,
  )
}
