import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { SandboxParams } from './sandboxes/manage.ts'
import { Text, Timestamp } from './schemas/text.ts'
import { unixTime } from './schemas/unix-time.ts'

/** What happened in sandboxes: their processes with what they printed, and the daemon. Kept for 7 days. */

export const LogLevel = z.enum(['debug', 'info', 'warn', 'error']).meta({ id: 'LogLevel' })

export const SandboxLogEntry = z
  .object({
    timestamp: Timestamp.describe('No two entries of a sandbox have the same'),
    level: LogLevel,
    message: z.string(),
    fields: z
      .record(z.string(), z.string())
      .describe('`logger` says where it comes from; of a process `pid`, `tag`, `stream`'),
  })
  .meta({ id: 'SandboxLogEntry' })

const SandboxLog = z
  .object({
    timestamp: Timestamp,
    line: z.string().describe('A JSON object with level, logger, message and all fields'),
  })
  .meta({ id: 'SandboxLog' })

const limitUpTo = (most: number, description: string) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, { error: `must be an integer from 0 to ${most}` })
    .transform(Number)
    .refine((limit) => limit <= most, { error: `must be an integer from 0 to ${most}` })
    .default(1000)
    .describe(description)

export const getSandboxLogs = defineOperation({
  id: 'sandbox.logs',
  summary: 'What happened in a sandbox, oldest first',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/logs',
  auth: 'team',
  params: SandboxParams,
  query: z.object({
    start: unixTime(
      'milliseconds',
      'From this time on, in Unix milliseconds; 7 days ago by default',
    ),
    limit: limitUpTo(2 ** 31 - 1, 'How many at most, of the oldest'),
  }),
  replies: {
    200: {
      description: 'Oldest first; empty for an unknown sandbox',
      body: z
        .object({
          logs: z.array(SandboxLog).meta({ deprecated: true }),
          logEntries: z.array(SandboxLogEntry).describe('The same entries'),
        })
        .meta({ id: 'SandboxLogs' }),
    },
  },
  errors: [400, 401, 500, 503],
})

const searchLimit = 256

export const getSandboxLogsV2 = defineOperation({
  id: 'sandbox.logsV2',
  summary: 'What happened in a sandbox, from a moment on backward or forward',
  method: 'GET',
  path: '/v2/sandboxes/{sandboxID}/logs',
  auth: 'team',
  params: SandboxParams,
  query: z.object({
    cursor: unixTime(
      'milliseconds',
      'Where to begin, in Unix milliseconds: the 7 days before it (exclusive) or after it (inclusive); ' +
        'by default now, or 7 days ago',
    ),
    limit: limitUpTo(1000, 'How many at most: 0 to 1000'),
    direction: z
      .enum(['forward', 'backward'])
      .default('backward')
      .describe('Backward: the newest first'),
    level: LogLevel.optional().describe('The least severe level that is shown'),
    search: Text.refine((text) => text.length <= searchLimit, {
      error: `must be at most ${searchLimit} characters`,
    })
      .optional()
      .describe('What the message or a field must contain, letter for letter'),
  }),
  replies: {
    200: {
      description: 'Empty for an unknown sandbox',
      body: z.object({ logs: z.array(SandboxLogEntry) }).meta({ id: 'SandboxLogsV2Response' }),
    },
  },
  errors: [400, 401, 500, 503],
})
