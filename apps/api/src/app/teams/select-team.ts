import { Fault } from '@atoll/kit/fault'
import { checkNotBlocked } from '../../domain/teams/team-block.ts'
import type { RequestedOperation } from '../../domain/teams/team-block.ts'
import type { Caller, TeamStore } from '../../domain/teams/team.ts'

/** Resolves the `teamID` parameter of a request. Defaults to the team of the caller. */
export type SelectTeam = (
  caller: Caller,
  wanted: string | undefined,
  operation: RequestedOperation,
) => Promise<string>

export function createSelectTeam(teams: Pick<TeamStore, 'isMember' | 'find'>): SelectTeam {
  return async ({ teamId, user }, wanted, operation) => {
    if (wanted === undefined || wanted === teamId) return teamId
    if (!user) {
      throw new Fault(
        'invalid',
        'team_mismatch',
        'teamID is not the team of the API key: omit it, or use a key of that team',
      )
    }
    if (await teams.isMember(user.id, wanted)) {
      checkNotBlocked(await teams.find(wanted), operation)
      return wanted
    }
    throw new Fault(
      'forbidden',
      'team_forbidden',
      'You are not a member of the team in teamID: GET /teams lists yours',
    )
  }
}
