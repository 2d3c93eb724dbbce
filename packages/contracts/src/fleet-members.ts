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

export const ForgottenNode = z
  .object({
    isDone: z.boolean().describe('Whether nothing is left to do. If not, call again'),
    endedRunning: z.int().min(0).describe('Sandboxes that this call has ended: they ran'),
    endedPaused: z
      .int()
      .min(0)
      .describe('Paused sandboxes that this call has ended: they were not in the object store'),
    finishedKills: z.int().min(0).describe('Kills that this call has finished'),
    keptPaused: z
      .int()
      .min(0)
      .describe('Paused sandboxes that other nodes can resume; 0 until it is done'),
    lostSnapshots: z
      .int()
      .min(0)
      .describe('Snapshots that this call has deleted: only the node had their files'),
    lostTemplates: z
      .int()
      .min(0)
      .describe('Builds of templates that this call has failed: only the node had their files'),
  })
  .meta({ id: 'ForgottenNode' })

export const forgetNode = defineOperation({
  id: 'fleet.forgetNode',
  summary:
    'Remove a node that never comes back. Ends the sandboxes, snapshots and built templates whose only copy it had. Refused while the node may work',
  method: 'POST',
  path: '/fleet/members/{memberID}/forget',
  auth: 'admin',
  params: z.object({ memberID: Text.max(64) }),
  replies: { 200: { description: 'What this call has done', body: ForgottenNode } },
  errors: [400, 404, 409, 500, 503],
})
