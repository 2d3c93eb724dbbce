import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { SandboxParams } from './sandboxes/manage.ts'
import { Timestamp } from './schemas/text.ts'
import { unixTime } from './schemas/unix-time.ts'

/** What teams and sandboxes use over time. Samples are taken every 5 seconds; long ranges come in longer steps. */

const unixSeconds = (description: string) => unixTime('seconds', description)

const TeamParams = z.object({ teamID: z.string() })

const TeamRange = {
  start: unixSeconds('Start of the interval in Unix seconds, inclusive; 7 days ago by default'),
  end: unixSeconds('End of the interval in Unix seconds, inclusive; now by default'),
}

const times = {
  timestamp: Timestamp.meta({ deprecated: true }),
  timestampUnix: z.int().describe('Unix seconds'),
}

const TeamMetric = z
  .object({
    ...times,
    concurrentSandboxes: z.int32().describe('The most that ran at once within this step'),
    sandboxStartRate: z.number().describe('Sandboxes started per second, over this step'),
  })
  .meta({ id: 'TeamMetric' })

const MaxTeamMetric = z.object({ ...times, value: z.number() }).meta({ id: 'MaxTeamMetric' })

export const SandboxMetric = z
  .object({
    ...times,
    cpuCount: z.int32(),
    cpuUsedPct: z.number().describe('Percent of all its CPUs together'),
    memUsed: z.int().describe('Bytes, without the cache'),
    memTotal: z.int().describe('Bytes'),
    memCache: z.int().describe('Bytes of files kept in memory, given back when memory is short'),
    diskUsed: z.int().describe('Bytes'),
    diskTotal: z.int().describe('Bytes'),
  })
  .meta({ id: 'SandboxMetric' })

export const getTeamMetrics = defineOperation({
  id: 'team.metrics',
  summary: 'How many sandboxes of a team ran and started, over time',
  method: 'GET',
  path: '/teams/{teamID}/metrics',
  auth: 'team',
  params: TeamParams,
  query: z.object(TeamRange),
  replies: {
    200: {
      description: 'Oldest first; steps without a sample are left out',
      body: z.array(TeamMetric),
    },
  },
  errors: [400, 401, 403, 500],
})

export const getTeamMetricsMax = defineOperation({
  id: 'team.metricsMax',
  summary: 'The largest value of one metric of a team within an interval',
  method: 'GET',
  path: '/teams/{teamID}/metrics/max',
  auth: 'team',
  params: TeamParams,
  query: z.object({
    metric: z.enum(['concurrent_sandboxes', 'sandbox_start_rate']),
    ...TeamRange,
  }),
  replies: { 200: { description: '0 where there are no samples', body: MaxTeamMetric } },
  errors: [400, 401, 403, 500],
})

export const getSandboxMetrics = defineOperation({
  id: 'sandbox.metrics',
  summary: 'What a sandbox used, over time',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/metrics',
  auth: 'team',
  params: SandboxParams,
  query: z.object({
    start: unixSeconds(
      'Start of the interval in Unix seconds, inclusive; the first sample by default',
    ),
    end: unixSeconds('End of the interval in Unix seconds, inclusive; the last sample by default'),
  }),
  replies: {
    200: {
      description: 'Oldest first, the largest values of each step; empty for an unknown sandbox',
      body: z.array(SandboxMetric),
    },
  },
  errors: [400, 401, 500],
})

const mostIds = 100

const SandboxIds = z
  .string()
  .transform((list) => list.split(','))
  .pipe(
    z
      .array(SandboxParams.shape.sandboxID)
      .max(mostIds, { error: `must name at most ${mostIds} sandboxes` })
      .refine((ids) => new Set(ids).size === ids.length, { error: 'must name each sandbox once' }),
  )

export const listSandboxMetrics = defineOperation({
  id: 'sandbox.listMetrics',
  summary: 'The newest sample of several sandboxes',
  method: 'GET',
  path: '/sandboxes/metrics',
  auth: 'team',
  query: z.object({
    sandbox_ids: SandboxIds.describe('A comma list of up to 100 ids, each once'),
  }),
  replies: {
    200: {
      description: 'By id; those without samples are left out',
      body: z
        .object({ sandboxes: z.record(z.string(), SandboxMetric) })
        .meta({ id: 'SandboxesWithMetrics' }),
    },
  },
  errors: [400, 401, 500],
})
