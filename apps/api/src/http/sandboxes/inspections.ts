import { listDeniedSandboxes, listSandboxConnections } from '@atoll/contracts/network/connections'
import { listFileChanges, readFileChange } from '@atoll/contracts/sandboxes/changes'
import type { FastifyInstance } from 'fastify'
import type { ListConnections } from '../../app/inspections/connections.ts'
import type { ListDeniedSandboxes } from '../../app/inspections/denied-sandboxes.ts'
import type { FileChangeReader } from '../../app/inspections/file-changes.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import { addTeamRoute } from '../server/route.ts'

export function addInspectionRoutes(
  server: FastifyInstance,
  {
    authenticate,
    fileChanges,
    listConnections,
    listDenied,
  }: {
    readonly authenticate: Authenticate
    readonly fileChanges: FileChangeReader
    readonly listConnections: ListConnections
    readonly listDenied: ListDeniedSandboxes
  },
): void {
  addTeamRoute(server, listFileChanges, authenticate, async (request, { teamId }) => {
    const { path, limit, nextToken, with: otherId } = request.query
    const of = { teamId, sandboxId: request.params.sandboxID }
    const body = await fileChanges.list(of, { path, limit, nextToken, otherId }, request.signal)
    return { status: 200, body }
  })
  addTeamRoute(server, readFileChange, authenticate, async (request, { teamId }) => {
    const of = { teamId, sandboxId: request.params.sandboxID }
    const { path, with: otherId } = request.query
    return { status: 200, body: await fileChanges.read(of, { path, otherId }, request.signal) }
  })
  addTeamRoute(server, listSandboxConnections, authenticate, async (request, { teamId }) => {
    const of = { teamId, sandboxId: request.params.sandboxID }
    return { status: 200, body: { connections: await listConnections(of, request.signal) } }
  })
  addTeamRoute(server, listDeniedSandboxes, authenticate, async (_request, { teamId }) => {
    const sandboxes = (await listDenied(teamId)).map(({ sandboxId, lastMs }) => ({
      sandboxID: sandboxId,
      lastAt: new Date(lastMs).toISOString(),
    }))
    return { status: 200, body: { sandboxes } }
  })
}
