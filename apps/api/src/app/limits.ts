import type { TeamLimits } from '../domain/limits.ts'
import type { TeamStore } from '../domain/team.ts'

/** The limits in force for a team: its own, and the configured ones for the rest. */
export type LimitsOf = (teamId: string) => Promise<TeamLimits>

export function createLimitsOf(teams: Pick<TeamStore, 'find'>, configured: TeamLimits): LimitsOf {
  return async (teamId) => ({ ...configured, ...(await teams.find(teamId))?.limits })
}
