import { getSandboxTimeline } from '@atoll/contracts/sandboxes/timeline'
import type { FastifyInstance } from 'fastify'
import type { ReadTimeline } from '../../app/inspections/timeline.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import { addTeamRoute } from '../server/route.ts'

export function addTimelineRoutes(
  server: FastifyInstance,
  routes: { readonly authenticate: Authenticate; readonly readTimeline: ReadTimeline },
): void {
  const { authenticate, readTimeline } = routes
  addTeamRoute(server, getSandboxTimeline, authenticate, async ({ params }, { teamId }) => {
    const events = await readTimeline({ teamId, sandboxId: params.sandboxID })
    return {
      status: 200,
      body: {
        events: events.map(({ at, kind, sandboxId, reason }) => ({
          at: at.toISOString(),
          kind,
          ...(sandboxId !== undefined && { sandboxID: sandboxId }),
          ...(reason !== undefined && { reason }),
        })),
      },
    }
  })
}
