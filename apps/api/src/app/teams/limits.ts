import type { TeamLimits } from '../../domain/teams/limits.ts'
import type { TeamStore } from '../../domain/teams/team.ts'

/** Returns the effective limits of a team: its own limits, and the configured defaults for the rest. */
export type LimitsOf = (teamId: string) => Promise<TeamLimits>

export function createLimitsOf(teams: Pick<TeamStore, 'find'>, configured: TeamLimits): LimitsOf {
  return async (teamId) => ({ ...configured, ...(await teams.find(teamId))?.limits })
}
