import { Fault } from '@atoll/kit/fault'
import type { Caller, TeamStore } from '../domain/team.ts'

/** The team that a request with a `teamID` parameter means. Without one it is that of the caller. */
export type SelectTeam = (caller: Caller, wanted: string | undefined) => Promise<string>

export function createSelectTeam(teams: Pick<TeamStore, 'isMember'>): SelectTeam {
  return async ({ teamId, user }, wanted) => {
    if (wanted === undefined || wanted === teamId) return teamId
    if (!user) {
      throw new Fault(
        'invalid',
        'team_mismatch',
        'teamID is not the team of the API key: leave it out, or use a key of that team',
      )
    }
    if (await teams.isMember(user.id, wanted)) return wanted
    throw new Fault(
      'forbidden',
      'team_forbidden',
      'You are not a member of the team in teamID: GET /teams lists yours',
    )
  }
}
