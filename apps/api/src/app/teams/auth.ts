import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import { accessTokenPrefix, apiKeyPrefix, hashSecret, looksLike } from '../../domain/teams/key.ts'
import type { KeyStore } from '../../domain/teams/key.ts'
import { checkNotBlocked } from '../../domain/teams/team-block.ts'
import type { RequestedOperation } from '../../domain/teams/team-block.ts'
import type { Caller, TeamStore, User, UserStore } from '../../domain/teams/team.ts'
import type { RateLimiter, RateState } from './rate-limits.ts'

export interface Credentials {
  readonly apiKey: string | undefined
  /** Authorization header without the `Bearer` prefix. */
  readonly bearer: string | undefined
  readonly adminToken: string | undefined
  /** Team that a user or an operator selects (X-Team-ID). */
  readonly teamId: string | undefined
}

/** Identifies the caller of a request. Every call queries the store, so a deleted key is rejected at once. */
export interface Authenticate {
  /** Also throws a fault when the team is blocked from this operation. */
  team(
    credentials: Credentials,
    operation: RequestedOperation,
  ): Promise<Caller & { readonly rate: RateState | undefined }>
  user(credentials: Credentials): Promise<User>
  admin(credentials: Credentials): void
}

interface AuthPorts {
  readonly keys: KeyStore
  readonly teams: TeamStore
  readonly users: UserStore
  readonly clock: Clock
  readonly log: Logger
  readonly rates: RateLimiter
  /** Undefined disables operator access. */
  readonly adminToken: string | undefined
}

export function createAuthenticate(ports: AuthPorts): Authenticate {
  const { teams, rates } = ports
  const identify = createIdentify(ports)
  return {
    admin: identify.admin,
    user: identify.user,
    async team(credentials, operation) {
      const caller = await identify.caller(credentials)
      const { teamId } = caller
      if (!caller.isOperator) checkNotBlocked(await teams.find(teamId), operation)
      return { ...caller, rate: await rates.take(teamId, operation.id) }
    },
  }
}

function createIdentify(ports: AuthPorts) {
  const { keys, users } = ports
  const recordUse = createUseRecorder(ports)
  const isAdminToken = createAdminCheck(ports.adminToken)

  const admin = ({ adminToken }: Credentials): void => {
    if (adminToken !== undefined && isAdminToken(adminToken)) return
    throw new Fault(
      'unauthenticated',
      'admin_token_invalid',
      'The header X-Admin-Token is missing or wrong: send the value of the server setting ATOLL_ADMIN_TOKEN',
    )
  }
  const user = async ({ bearer }: Credentials): Promise<User> => {
    if (bearer === undefined) throw missing('an access token as `Authorization: Bearer sk_e2b_…`')
    const found =
      looksLike(accessTokenPrefix, bearer) && (await users.findByTokenHash(hashSecret(bearer)))
    if (found) return found
    throw invalid('The access token in Authorization is not valid', accessTokenPrefix)
  }
  const byKey = async (apiKey: string): Promise<Caller> => {
    const key = looksLike(apiKeyPrefix, apiKey) && (await keys.findByHash(hashSecret(apiKey)))
    if (!key) throw invalid('The API key in X-API-Key is not valid', apiKeyPrefix)
    recordUse(key.id)
    return { teamId: key.teamId }
  }
  const caller = async (credentials: Credentials): Promise<Caller> => {
    const { apiKey, adminToken, bearer, teamId } = credentials
    if (apiKey !== undefined) return byKey(apiKey)
    if (adminToken !== undefined) {
      admin(credentials)
      return selectTeamAsOperator(ports, teamId)
    }
    if (bearer !== undefined) return selectTeamAsUser(ports, await user(credentials), teamId)
    throw missing(
      'an API key as `X-API-Key: e2b_…` or an access token as `Authorization: Bearer sk_e2b_…`',
    )
  }
  return { admin, user, caller }
}

async function selectTeamAsOperator(
  { teams }: AuthPorts,
  teamId: string | undefined,
): Promise<Caller> {
  if (teamId === undefined) throw missing('the team as X-Team-ID beside X-Admin-Token')
  if (await teams.find(teamId)) return { teamId, isOperator: true }
  throw forbidden('The team in X-Team-ID does not exist: GET /admin/teams lists all teams')
}

async function selectTeamAsUser(
  { teams }: AuthPorts,
  { id, email, defaultTeamId }: User,
  wantedTeamId: string | undefined,
): Promise<Caller> {
  const teamId = wantedTeamId ?? defaultTeamId
  if (await teams.isMember(id, teamId)) return { teamId, user: { id, email } }
  if (wantedTeamId !== undefined) {
    throw forbidden('You are not a member of the team in X-Team-ID: GET /teams lists yours')
  }
  const [other] = await teams.listOfUser(id)
  if (other) return { teamId: other.id, user: { id, email } }
  throw forbidden('You are not a member of any team: ask an operator to add you to one')
}

const useIntervalMs = 60_000

/** Records key use in the background, at most once a minute per key. */
function createUseRecorder({ keys, clock, log }: AuthPorts): (id: string) => void {
  const lastRecorded = new Map<string, number>()
  return (id) => {
    const now = clock.now()
    if (now.getTime() - (lastRecorded.get(id) ?? -Infinity) < useIntervalMs) return
    lastRecorded.set(id, now.getTime())
    keys.recordUse(id, now).catch((error: unknown) => {
      log.warn({ err: error }, 'the time of the last use of a key could not be stored')
    })
  }
}

/** Compares in constant time. */
function createAdminCheck(adminToken: string | undefined): (given: string) => boolean {
  if (adminToken === undefined) return () => false
  const expected = Buffer.from(hashSecret(adminToken), 'hex')
  return (given) => timingSafeEqual(Buffer.from(hashSecret(given), 'hex'), expected)
}

function missing(what: string): Fault {
  const message = `Credentials are missing: send ${what}`
  return new Fault('unauthenticated', 'credentials_missing', message)
}

function invalid(what: string, prefix: string): Fault {
  return new Fault(
    'unauthenticated',
    'credentials_invalid',
    `${what}: send one that exists, ${prefix} and 40 hexadecimal digits`,
  )
}

function forbidden(message: string): Fault {
  return new Fault('forbidden', 'team_forbidden', message)
}
