import { getBuildLogs, getBuildStatus } from '@atoll/contracts/builds/progress'
import type { FastifyInstance } from 'fastify'
import type { Authenticate } from '../../app/teams/auth.ts'
import type { BuildProgress } from '../../app/builds/build-progress.ts'
import type { BuildLogEntry } from '../../domain/builds/build-log.ts'
import { addTeamRoute } from '../server/route.ts'

export function addBuildProgressRoutes(
  server: FastifyInstance,
  {
    authenticate,
    progress,
  }: { readonly authenticate: Authenticate; readonly progress: BuildProgress },
): void {
  addTeamRoute(server, getBuildStatus, authenticate, async ({ params, query }, { teamId }) => {
    const buildRef = { teamId, templateId: params.templateID, buildId: params.buildID }
    const { logsOffset: offset, limit, level } = query
    const { build, entries, reason } = await progress.status(buildRef, { offset, limit, level })
    const body = {
      templateID: build.templateId,
      buildID: build.id,
      status: build.status,
      logs: entries.map(({ message }) => message),
      logEntries: entries.map(toView),
      ...(reason && {
        reason: {
          message: reason.message,
          ...(reason.step !== undefined && { step: reason.step }),
          logEntries: reason.entries.map(toView),
        },
      }),
    }
    return { status: 200, body }
  })
  addTeamRoute(server, getBuildLogs, authenticate, async ({ params, query }, { teamId }) => {
    const buildRef = { teamId, templateId: params.templateID, buildId: params.buildID }
    const { cursor: cursorMs, direction, limit, level } = query
    const entries = await progress.logs(buildRef, { cursorMs, direction, limit, level })
    return { status: 200, body: { logs: entries.map(toView) } }
  })
}

function toView({ at, level, message, step }: BuildLogEntry) {
  return { timestamp: at.toISOString(), level, message, ...(step !== '' && { step }) }
}
