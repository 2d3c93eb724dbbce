import { listFileChanges, readFileChange } from '@atoll/contracts/sandboxes/changes'
import type { FastifyInstance } from 'fastify'
import type { FileChangeReader } from '../../app/inspections/file-changes.ts'
import type { Authenticate } from '../../app/teams/auth.ts'
import { addTeamRoute } from '../server/route.ts'

export function addFileChangeRoutes(
  server: FastifyInstance,
  {
    authenticate,
    fileChanges,
  }: { readonly authenticate: Authenticate; readonly fileChanges: FileChangeReader },
): void {
  addTeamRoute(server, listFileChanges, authenticate, async (request, { teamId }) => {
    const { path, limit, nextToken } = request.query
    const of = { teamId, sandboxId: request.params.sandboxID }
    const body = await fileChanges.list(of, { path, limit, nextToken }, request.signal)
    return { status: 200, body }
  })
  addTeamRoute(server, readFileChange, authenticate, async (request, { teamId }) => {
    const of = { teamId, sandboxId: request.params.sandboxID }
    return { status: 200, body: await fileChanges.read(of, request.query.path, request.signal) }
  })
}
