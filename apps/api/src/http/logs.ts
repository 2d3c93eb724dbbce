import { getSandboxLogs, getSandboxLogsV2, listLastLines } from '@atoll/contracts/logs'
import type { SandboxLogEntry } from '@atoll/contracts/logs'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../app/teams/auth.ts'
import type { Logs } from '../app/logs/logs.ts'
import type { LastLine, LogEntry } from '../domain/log.ts'
import { addTeamRoute } from './server/route.ts'

export function addLogRoutes(
  server: FastifyInstance,
  { authenticate, logs }: { readonly authenticate: Authenticate; readonly logs: Logs },
): void {
  addTeamRoute(server, getSandboxLogs, authenticate, async ({ params, query }, { teamId }) => {
    const of = { teamId, sandboxId: params.sandboxID }
    const entries = await logs.since(of, { startMs: query.start, limit: query.limit })
    return { status: 200, body: { logs: entries.map(toLine), logEntries: entries.map(toView) } }
  })
  addTeamRoute(server, getSandboxLogsV2, authenticate, async ({ params, query }, { teamId }) => {
    const { cursor: cursorMs, direction, limit, level, search } = query
    const of = { teamId, sandboxId: params.sandboxID }
    const entries = await logs.around(of, { cursorMs, direction, limit, level, search })
    return { status: 200, body: { logs: entries.map(toView) } }
  })
  addTeamRoute(server, listLastLines, authenticate, async ({ query }, { teamId }) => {
    const lines = await logs.lastLines(teamId, query.sandbox_ids)
    const views = lines.map((line) => [line.sandboxId, toLastLine(line)] as const)
    return { status: 200, body: { sandboxes: Object.fromEntries(views) } }
  })
}

/** Clients parse the line and need its level, so `level` and `message` override fields of the same name. */
function toLine(entry: LogEntry) {
  const { level, message, fields } = entry
  return { timestamp: timeOf(entry), line: JSON.stringify({ ...fields, level, message }) }
}

function toView(entry: LogEntry): z.infer<typeof SandboxLogEntry> {
  const { level, message, fields } = entry
  return { timestamp: timeOf(entry), level, message, fields }
}

function toLastLine({ at, text }: LastLine) {
  return { timestamp: timeOf({ at }), text }
}

function timeOf({ at }: Pick<LogEntry, 'at'>): string {
  return new Date(at).toISOString()
}
