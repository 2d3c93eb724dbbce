import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { SandboxIds, SandboxParams } from './sandboxes/manage.ts'
import { Timestamp } from './schemas/text.ts'
import { unixTime } from './schemas/unix-time.ts'

/**
 * Resource usage of teams and sandboxes over time. Sampled every 5 seconds; long intervals are returned in longer
 * steps.
 */

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

export const TeamMetric = z
  .object({
    ...times,
    concurrentSandboxes: z.int32().describe('Maximum of concurrent sandboxes within this step'),
    sandboxStartRate: z
      .number()
      .describe('Average of sandboxes started per second within this step'),
  })
  .meta({ id: 'TeamMetric' })

const MaxTeamMetric = z.object({ ...times, value: z.number() }).meta({ id: 'MaxTeamMetric' })

export const SandboxMetric = z
  .object({
    ...times,
    cpuCount: z.int32(),
    cpuUsedPct: z.number().describe('Percent of all CPUs of the sandbox together'),
    memUsed: z.int().describe('Bytes, without the page cache'),
    memTotal: z.int().describe('Bytes'),
    memCache: z.int().describe('Bytes of page cache, reclaimed when memory is short'),
    diskUsed: z.int().describe('Bytes'),
    diskTotal: z.int().describe('Bytes'),
  })
  .meta({ id: 'SandboxMetric' })

export const getTeamMetrics = defineOperation({
  id: 'team.metrics',
  summary: 'Get the running and started sandboxes of a team over time',
  method: 'GET',
  path: '/teams/{teamID}/metrics',
  auth: 'team',
  params: TeamParams,
  query: z.object(TeamRange),
  replies: {
    200: {
      description: 'Oldest first; steps without a sample are omitted',
      body: z.array(TeamMetric),
    },
  },
  errors: [400, 401, 403, 500],
})

export const getTeamMetricsMax = defineOperation({
  id: 'team.metricsMax',
  summary: 'Get the maximum of one team metric within an interval',
  method: 'GET',
  path: '/teams/{teamID}/metrics/max',
  auth: 'team',
  params: TeamParams,
  query: z.object({
    metric: z.enum(['concurrent_sandboxes', 'sandbox_start_rate']),
    ...TeamRange,
  }),
  replies: { 200: { description: 'The maximum; 0 if there are no samples', body: MaxTeamMetric } },
  errors: [400, 401, 403, 500],
})

export const getSandboxMetrics = defineOperation({
  id: 'sandbox.metrics',
  summary: 'Get the resource usage of a sandbox over time',
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
      description: 'Oldest first, with the maximum of each step; empty for an unknown sandbox',
      body: z.array(SandboxMetric),
    },
  },
  errors: [400, 401, 500],
})

export const listSandboxMetrics = defineOperation({
  id: 'sandbox.listMetrics',
  summary: 'Get the latest sample of several sandboxes',
  method: 'GET',
  path: '/sandboxes/metrics',
  auth: 'team',
  query: z.object({
    sandbox_ids: SandboxIds,
  }),
  replies: {
    200: {
      description: 'Samples by ID; sandboxes without a sample are omitted',
      body: z
        .object({ sandboxes: z.record(z.string(), SandboxMetric) })
        .meta({ id: 'SandboxesWithMetrics' }),
    },
  },
  errors: [400, 401, 500],
})
