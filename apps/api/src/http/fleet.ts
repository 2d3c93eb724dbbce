import {
  createJoinToken,
  forgetNode,
  listFleetMembers,
  removeFleetMember,
} from '@atoll/contracts/fleet-members'
import { Fault } from '@atoll/kit/fault'
import type { FastifyInstance } from 'fastify'
import type { Forgetting } from '../app/fleet/forget-node.ts'
import type { Membership } from '../app/fleet/membership.ts'
import type { Authenticate } from '../app/teams/auth.ts'
import { addAdminRoute } from './server/route.ts'

export interface FleetAdministration {
  readonly membership: Membership
  readonly forget: Forgetting['forget']
  /** Returns the text of a join token with this secret. */
  readonly formatToken: (secret: string) => string
}

/** Without a fleet, as in `atoll up`, the operations are refused. */
export function addFleetRoutes(
  server: FastifyInstance,
  authenticate: Authenticate,
  fleet: FleetAdministration | undefined,
): void {
  addAdminRoute(server, createJoinToken, authenticate, async ({ body }) => {
    const { membership, formatToken } = requireFleet(fleet)
    const { secret, expiresAt } = await membership.createToken(body.role)
    const token = formatToken(secret)
    return { status: 201, body: { token, role: body.role, expiresAt: expiresAt.toISOString() } }
  })
  addAdminRoute(server, listFleetMembers, authenticate, async () => {
    const members = await requireFleet(fleet).membership.list()
    const body = members.map(({ id, role, joinedAt }) => ({
      ...{ id, role, joinedAt: joinedAt.toISOString() },
    }))
    return { status: 200, body }
  })
  addAdminRoute(server, removeFleetMember, authenticate, async ({ params }) => {
    await requireFleet(fleet).membership.remove(params.memberID)
    return { status: 204 }
  })
  addAdminRoute(server, forgetNode, authenticate, async ({ params }) => ({
    status: 200,
    body: await requireFleet(fleet).forget(params.memberID),
  }))
}

function requireFleet(fleet: FleetAdministration | undefined): FleetAdministration {
  if (fleet) return fleet
  throw new Fault(
    'conflict',
    'no_fleet',
    'This server runs alone (atoll up), so nothing can join it: start atoll api for a fleet',
  )
}
