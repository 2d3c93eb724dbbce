import { z } from 'zod'
import { LogLevel } from '../logs.ts'
import { defineOperation } from '../operation.ts'
import { BuildParams } from './request.ts'
import { BuildStatus } from '../templates/manage.ts'
import { Timestamp } from '../schemas/text.ts'
import { unixTime } from '../schemas/unix-time.ts'

/** What became of a build so far. */

const BuildLogEntry = z
  .object({
    timestamp: Timestamp,
    level: LogLevel,
    message: z.string(),
    step: z
      .string()
      .optional()
      .describe('`base`, the number of a step counted from one, or `finalize`'),
  })
  .meta({ id: 'BuildLogEntry' })

const wholeNumber = (most: number) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, { error: `must be an integer from 0 to ${most}` })
    .transform(Number)
    .refine((value) => value <= most, { error: `must be an integer from 0 to ${most}` })

const LogQuery = {
  limit: wholeNumber(100).default(100).describe('How many at most: 0 to 100'),
  level: LogLevel.optional().describe('The least severe level that is shown'),
}

export const getBuildStatus = defineOperation({
  id: 'template.buildStatus',
  summary: 'Where a build is, with what it said after so many entries',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/status',
  auth: 'team',
  params: BuildParams,
  query: z.object({
    logsOffset: wholeNumber(2 ** 31 - 1)
      .default(0)
      .describe('How many entries to pass over'),
    ...LogQuery,
  }),
  replies: {
    200: {
      description: 'Entries in order',
      body: z
        .object({
          templateID: z.string(),
          buildID: z.uuid(),
          status: BuildStatus,
          logs: z
            .array(z.string())
            .describe('The messages of logEntries')
            .meta({ deprecated: true }),
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
        .meta({ id: 'TemplateBuildInfo' }),
    },
  },
  errors: [400, 401, 403, 500],
})

export const getBuildLogs = defineOperation({
  id: 'template.buildLogs',
  summary: 'What a build said, from a moment on forward or backward',
  method: 'GET',
  path: '/templates/{templateID}/builds/{buildID}/logs',
  auth: 'team',
  params: BuildParams,
  query: z.object({
    cursor: unixTime(
      'milliseconds',
      'Where to begin, in Unix milliseconds: what is before it (exclusive) or after it (inclusive)',
    ),
    direction: z
      .enum(['forward', 'backward'])
      .default('forward')
      .describe('Backward: the newest first'),
    source: z.enum(['temporary', 'persistent']).optional().describe('Both are the same here'),
    ...LogQuery,
  }),
  replies: {
    200: {
      description: 'What there is',
      body: z.object({ logs: z.array(BuildLogEntry) }).meta({ id: 'TemplateBuildLogsResponse' }),
    },
  },
  errors: [400, 401, 403, 500],
})
