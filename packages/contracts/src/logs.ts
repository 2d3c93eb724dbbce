import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { SandboxIds, SandboxParams } from './sandboxes/manage.ts'
import { Text, Timestamp } from './schemas/text.ts'
import { unixTime } from './schemas/unix-time.ts'

/** Logs of sandboxes: events and output of their processes, and messages of envd. Kept for 7 days. */

export const LogLevel = z.enum(['debug', 'info', 'warn', 'error']).meta({ id: 'LogLevel' })

export const SandboxLogEntry = z
  .object({
    timestamp: Timestamp.describe('Unique within a sandbox'),
    level: LogLevel,
    message: z.string(),
    fields: z
      .record(z.string(), z.string())
      .describe('`logger` names the source; process entries also have `pid`, `tag` and `stream`'),
  })
  .meta({ id: 'SandboxLogEntry' })

const SandboxLog = z
  .object({
    timestamp: Timestamp,
    line: z.string().describe('JSON object with level, logger, message and all fields'),
  })
  .meta({ id: 'SandboxLog' })

const limitUpTo = (max: number, description: string) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, { error: `must be an integer from 0 to ${max}` })
    .transform(Number)
    .refine((limit) => limit <= max, { error: `must be an integer from 0 to ${max}` })
    .default(1000)
    .describe(description)

export const getSandboxLogs = defineOperation({
  id: 'sandbox.logs',
  summary: 'Read the logs of a sandbox, oldest first',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/logs',
  auth: 'team',
  params: SandboxParams,
  query: z.object({
    start: unixTime('milliseconds', 'Start in Unix milliseconds; 7 days ago by default'),
    limit: limitUpTo(2 ** 31 - 1, 'Maximum number of entries'),
  }),
  replies: {
    200: {
      description: 'Oldest first; empty for an unknown sandbox',
      body: z
        .object({
          logs: z.array(SandboxLog).meta({ deprecated: true }),
          logEntries: z.array(SandboxLogEntry).describe('Same entries as `logs`'),
        })
        .meta({ id: 'SandboxLogs' }),
    },
  },
  errors: [400, 401, 500, 503],
})

const LastLine = z
  .object({
    timestamp: Timestamp,
    text: z.string().describe('First 200 characters, as the program printed them'),
  })
  .meta({ id: 'SandboxLastLine' })

export const listLastLines = defineOperation({
  id: 'sandbox.lastLines',
  summary: 'Get the last line that programs of several sandboxes printed, a few seconds old',
  method: 'GET',
  path: '/sandboxes/last-lines',
  auth: 'team',
  query: z.object({ sandbox_ids: SandboxIds }),
  replies: {
    200: {
      description:
        'Lines by ID, of running and paused sandboxes; sandboxes without a line are omitted. Output of terminals is not logged',
      body: z
        .object({ sandboxes: z.record(z.string(), LastLine) })
        .meta({ id: 'SandboxesWithLastLines' }),
    },
  },
  errors: [400, 401, 500],
})

const searchLimit = 256

export const getSandboxLogsV2 = defineOperation({
  id: 'sandbox.logsV2',
  summary: 'Read the logs of a sandbox from a cursor, backward or forward',
  method: 'GET',
  path: '/v2/sandboxes/{sandboxID}/logs',
  auth: 'team',
  params: SandboxParams,
  query: z.object({
    cursor: unixTime(
      'milliseconds',
      'Start in Unix milliseconds: the 7 days before it (exclusive) or after it (inclusive); ' +
        'by default now, or 7 days ago',
    ),
    limit: limitUpTo(1000, 'Maximum number of entries, 0 to 1000'),
    direction: z
      .enum(['forward', 'backward'])
      .default('backward')
      .describe('`backward` returns the newest entries first'),
    level: LogLevel.optional().describe('Minimum level'),
    search: Text.refine((text) => text.length <= searchLimit, {
      error: `must be at most ${searchLimit} characters`,
    })
      .optional()
      .describe('Case-sensitive text that the message or a field must contain'),
  }),
  replies: {
    200: {
      description: 'Empty for an unknown sandbox',
      body: z.object({ logs: z.array(SandboxLogEntry) }).meta({ id: 'SandboxLogsV2Response' }),
    },
  },
  errors: [400, 401, 500, 503],
})
