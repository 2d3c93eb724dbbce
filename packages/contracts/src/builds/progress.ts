import { z } from 'zod'
import { LogLevel } from '../logs.ts'
import { defineOperation } from '../operation.ts'
import { BuildParams } from './request.ts'
import { BuildStatus } from '../templates/manage.ts'
import { Timestamp } from '../schemas/text.ts'
import { unixTime } from '../schemas/unix-time.ts'

/** Status and logs of builds. */

export const BuildLogEntry = z
  .object({
    timestamp: Timestamp,
    level: LogLevel,
    message: z.string(),
    step: z.string().optional().describe('`base`, a step number starting at 1, or `finalize`'),
  })
  .meta({ id: 'BuildLogEntry' })

export const TemplateBuildInfo = z
  .object({
    templateID: z.string(),
    buildID: z.uuid(),
    status: BuildStatus,
    logs: z.array(z.string()).describe('Messages of `logEntries`').meta({ deprecated: true }),
    logEntries: z.array(BuildLogEntry),
    reason: z
      .object({
        message: z.string(),
        step: z.string().optional(),
        logEntries: z.array(BuildLogEntry).optional().describe('Warnings of that step'),
      })
      .meta({ id: 'BuildStatusReason' })
      .optional()
      .describe('Why the build failed'),
  })
  .meta({ id: 'TemplateBuildInfo' })

const wholeNumber = (max: number) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, { error: `must be an integer from 0 to ${max}` })
    .transform(Number)
    .refine((value) => value <= max, { error: `must be an integer from 0 to ${max}` })

const LogQuery = {
  limit: wholeNumber(100).default(100).describe('Maximum number of entries, 0 to 100'),
  level: LogLevel.optional().describe('Minimum level'),
}

export const getBuildStatus = defineOperation({
  id: 'template.buildStatus',
  summary: 'Get the status of a build and its log entries from an offset on',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/status',
  auth: 'team',
  params: BuildParams,
  query: z.object({
    logsOffset: wholeNumber(2 ** 31 - 1)
      .default(0)
      .describe('Number of entries to skip'),
    ...LogQuery,
  }),
  replies: {
    200: {
      description: 'Status, and entries in order',
      body: TemplateBuildInfo,
    },
  },
  errors: [400, 401, 403, 500],
})

export const getBuildLogs = defineOperation({
  id: 'template.buildLogs',
  summary: 'Read the log of a build from a cursor, forward or backward',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/logs',
  auth: 'team',
  params: BuildParams,
  query: z.object({
    cursor: unixTime(
      'milliseconds',
      'Start in Unix milliseconds: entries before it (exclusive) or after it (inclusive)',
    ),
    direction: z
      .enum(['forward', 'backward'])
      .default('forward')
      .describe('`backward` returns the newest entries first'),
    source: z
      .enum(['temporary', 'persistent'])
      .optional()
      .describe('Ignored: there is only one source'),
    ...LogQuery,
  }),
  replies: {
    200: {
      description: 'Log entries',
      body: z.object({ logs: z.array(BuildLogEntry) }).meta({ id: 'TemplateBuildLogsResponse' }),
    },
  },
  errors: [400, 401, 403, 500],
})
