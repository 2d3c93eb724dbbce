import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { Text, Timestamp } from './schemas/text.ts'

/** Operator API for the edges and nodes of a fleet. */

const Role = z.enum(['edge', 'node']).meta({ id: 'FleetRole' })

export const JoinToken = z
  .object({
    token: z.string().describe('Works once. Shown only here'),
    role: Role,
    expiresAt: Timestamp,
  })
  .meta({ id: 'JoinToken' })

const FleetMember = z
  .object({ id: z.string(), role: Role, joinedAt: Timestamp })
  .meta({ id: 'FleetMember' })

export const createJoinToken = defineOperation({
  id: 'fleet.createToken',
  summary: 'Create a token with which one edge or node can join the fleet, within an hour',
  method: 'POST',
  path: '/fleet/tokens',
  auth: 'admin',
  body: z.object({ role: Role }).meta({ id: 'NewJoinToken' }),
  replies: { 201: { description: 'The token', body: JoinToken } },
  errors: [400, 409, 500],
})

export const listFleetMembers = defineOperation({
  id: 'fleet.listMembers',
  summary:
    'List the edges and nodes of the fleet. Edges that have been silent for a day are left out',
  method: 'GET',
  path: '/fleet/members',
  auth: 'admin',
  replies: { 200: { description: 'All members', body: z.array(FleetMember) } },
  errors: [409, 500],
})

export const removeFleetMember = defineOperation({
  id: 'fleet.removeMember',
  summary:
    'Remove an edge or a node from the fleet. Its certificate is refused from now on; sandboxes of a node keep their records',
  method: 'DELETE',
  path: '/fleet/members/{memberID}',
  auth: 'admin',
  params: z.object({ memberID: Text.max(64) }),
  replies: { 204: { description: 'The member is removed' } },
  errors: [400, 404, 409, 500],
})
