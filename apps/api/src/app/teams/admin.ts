import { randomUUID } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { accessTokenPrefix, newSecret } from '../../domain/teams/key.ts'
import { changeLimits } from '../../domain/teams/limits.ts'
import type { TeamLimits } from '../../domain/teams/limits.ts'
import { placeStates } from '../../domain/sandboxes/sandbox.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { BlockLevel } from '../../domain/teams/team-block.ts'
import { toSlug } from '../../domain/teams/team.ts'
import type { Team, TeamStore, User, UserStore } from '../../domain/teams/team.ts'
import type { Ending } from '../sandboxes/ending.ts'

/** Team management for operators. */
export interface Admin {
  createTeam(name: string, limits: LimitChange): Promise<TeamWithLimits>
  listTeams(): Promise<TeamWithLimits[]>
  updateTeam(id: string, change: TeamChange): Promise<TeamWithLimits>
  /** Takes effect with the next request. For a blocked team, replaces the level and reason. */
  blockTeam(id: string, level: BlockLevel, reason: string): Promise<TeamWithLimits>
  unblockTeam(id: string): Promise<TeamWithLimits>
  /** Returns an access token only when the user is new. */
  addMember(teamId: string, email: string): Promise<{ user: User; accessToken?: string }>
  removeMember(teamId: string, userId: string): Promise<void>
  killAll(teamId: string): Promise<{ readonly killed: number; readonly failed: number }>
  countRunning(): Promise<ReadonlyMap<string, number>>
  /** Throws a `not_found` fault when the team does not exist. */
  checkTeam(id: string): Promise<void>
}

export interface TeamWithLimits {
  readonly team: Team
  readonly limits: TeamLimits
}

export type LimitChange = Parameters<typeof changeLimits>[1]

export interface TeamChange {
  readonly name: string | undefined
  readonly limits: LimitChange
}

interface AdminPorts {
  readonly teams: TeamStore
  readonly users: UserStore
  readonly sandboxes: SandboxStore
  readonly ending: Ending
  readonly clock: Clock
  readonly configured: TeamLimits
}

export function createAdmin(ports: AdminPorts): Admin {
  const { teams, sandboxes, ending, clock, configured } = ports
  const inForce = (team: Team) => ({ team, limits: { ...configured, ...team.limits } })
  const checkTeam = async (id: string): Promise<void> => {
    if (!(await teams.find(id))) throw absentTeam(id)
  }
  const update = async (id: string, change: (current: Team) => Team): Promise<TeamWithLimits> => {
    const changed = await teams.update(id, change)
    if (!changed) throw absentTeam(id)
    return inForce(changed)
  }
  return {
    checkTeam,
    async createTeam(name, limits) {
      const team = {
        id: randomUUID(),
        name,
        slug: toSlug(name),
        createdAt: clock.now(),
        limits: changeLimits({}, limits),
      }
      return inForce(await teams.insert(team))
    },
    listTeams: async () => (await teams.list()).map(inForce),
    updateTeam: (id, { name, limits }) =>
      update(id, (current) => ({
        ...current,
        name: name ?? current.name,
        limits: changeLimits(current.limits, limits),
      })),
    blockTeam: (id, level, reason) =>
      update(id, (current) => ({ ...current, block: { level, reason, since: clock.now() } })),
    unblockTeam: (id) => update(id, (current) => ({ ...current, block: undefined })),
    async addMember(teamId, email) {
      await checkTeam(teamId)
      return addMember(ports, teamId, email)
    },
    async removeMember(teamId, userId) {
      if (await ports.users.removeMember(userId, teamId)) return
      const message = `Team ${teamId} has no member ${userId}`
      throw new Fault('not_found', 'member_not_found', message)
    },
    async killAll(teamId) {
      await checkTeam(teamId)
      const running = await sandboxes.list({ teamId, states: placeStates })
      const results = await Promise.allSettled(
        running.map(async ({ id }) => {
          await ending.kill(id, 'was killed by an operator')
        }),
      )
      const failed = results.filter(({ status }) => status === 'rejected').length
      return { killed: results.length - failed, failed }
    },
    countRunning: () => sandboxes.countRunningByTeam(),
  }
}

async function addMember(
  ports: AdminPorts,
  teamId: string,
  email: string,
): Promise<{ user: User; accessToken?: string }> {
  const { users, clock } = ports
  const now = clock.now()
  const known = await users.findByEmail(email)
  if (known) {
    await users.addMember(known.id, teamId, now)
    return { user: known }
  }
  const user = { id: randomUUID(), email, defaultTeamId: teamId }
  const { value, hash, mask } = newSecret(accessTokenPrefix)
  const token = { id: randomUUID(), userId: user.id, name: 'default', mask, createdAt: now }
  if (await users.insert({ user, token, hash })) return { user, accessToken: value }
  return addMember(ports, teamId, email) // lost a race: the user exists now
}

function absentTeam(id: string): Fault {
  return new Fault(
    'not_found',
    'team_not_found',
    `There is no team ${id}: GET /admin/teams lists them`,
  )
}
