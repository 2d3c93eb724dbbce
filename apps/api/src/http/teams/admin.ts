import {
  addMember,
  blockTeam,
  countRunningSandboxes,
  createTeam,
  createTeamKey,
  deleteTeamKey,
  killTeamSandboxes,
  listAllTeams,
  removeMember,
  unblockTeam,
  updateTeam,
} from '@atoll/contracts/teams/admin'
import type { AdminTeam } from '@atoll/contracts/teams/admin'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Admin, LimitChange, TeamWithLimits } from '../../app/teams/admin.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { Keys } from '../../app/teams/keys.ts'
import { toKeyView } from './keys.ts'
import { addAdminRoute } from '../server/route.ts'

interface AdminRoutes {
  readonly authenticate: Authenticate
  readonly admin: Admin
  readonly keys: Keys
}

export function addAdminRoutes(server: FastifyInstance, routes: AdminRoutes): void {
  addTeamRoutes(server, routes)
  addKeyRoutes(server, routes)
  const { authenticate, admin } = routes
  addAdminRoute(server, addMember, authenticate, async ({ params, body }) => {
    const { user, accessToken } = await admin.addMember(params.teamID, body.email)
    const view = { userID: user.id, email: body.email }
    return { status: 201, body: { ...view, ...(accessToken !== undefined && { accessToken }) } }
  })
  addAdminRoute(server, removeMember, authenticate, async ({ params }) => {
    await admin.removeMember(params.teamID, params.userID)
    return { status: 204 }
  })
  addAdminRoute(server, killTeamSandboxes, authenticate, async ({ params }) => {
    const { killed, failed } = await admin.killAll(params.teamID)
    return { status: 200, body: { killedCount: killed, failedCount: failed } }
  })
  addAdminRoute(server, countRunningSandboxes, authenticate, async () => ({
    status: 200,
    body: Object.fromEntries(await admin.countRunning()),
  }))
}

function addTeamRoutes(server: FastifyInstance, { authenticate, admin }: AdminRoutes): void {
  addAdminRoute(server, createTeam, authenticate, async ({ body }) => ({
    status: 201,
    body: toView(await admin.createTeam(body.name, toLimits(body.limits))),
  }))
  addAdminRoute(server, listAllTeams, authenticate, async () => ({
    status: 200,
    body: (await admin.listTeams()).map(toView),
  }))
  addAdminRoute(server, updateTeam, authenticate, async ({ params, body }) => {
    const change = { name: body.name, limits: toLimits(body.limits) }
    return { status: 200, body: toView(await admin.updateTeam(params.teamID, change)) }
  })
  addAdminRoute(server, blockTeam, authenticate, async ({ params, body: { level, reason } }) => ({
    status: 200,
    body: toView(await admin.blockTeam(params.teamID, level, reason)),
  }))
  addAdminRoute(server, unblockTeam, authenticate, async ({ params }) => ({
    status: 200,
    body: toView(await admin.unblockTeam(params.teamID)),
  }))
}

function addKeyRoutes(server: FastifyInstance, { authenticate, admin, keys }: AdminRoutes): void {
  addAdminRoute(server, createTeamKey, authenticate, async ({ params, body }) => {
    await admin.checkTeam(params.teamID)
    const { key, value } = await keys.create({ teamId: params.teamID }, body.name)
    return { status: 201, body: { ...toKeyView(key), key: value } }
  })
  addAdminRoute(server, deleteTeamKey, authenticate, async ({ params }) => {
    await keys.delete(params.teamID, params.apiKeyID)
    return { status: 204 }
  })
}

function toLimits(limits: z.output<typeof createTeam.body>['limits'] = {}): LimitChange {
  const { maxMemoryMB, maxDiskSizeMB, keptDiskMB, ...same } = limits
  return {
    ...same,
    maxMemoryMb: maxMemoryMB,
    maxDiskSizeMb: maxDiskSizeMB,
    keptDiskMb: keptDiskMB,
  }
}

function toView({ team, limits }: TeamWithLimits): z.infer<typeof AdminTeam> {
  const { maxMemoryMb, maxDiskSizeMb, keptDiskMb, ...same } = limits
  const { block } = team
  return {
    teamID: team.id,
    name: team.name,
    slug: team.slug,
    createdAt: team.createdAt.toISOString(),
    limits: {
      ...same,
      maxMemoryMB: maxMemoryMb,
      maxDiskSizeMB: maxDiskSizeMb,
      keptDiskMB: keptDiskMb,
    },
    ...(block && { block: { ...block, since: block.since.toISOString() } }),
  }
}
