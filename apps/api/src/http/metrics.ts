import {
  getSandboxMetrics,
  getTeamMetrics,
  getTeamMetricsMax,
  listSandboxMetrics,
} from '@atoll/contracts/metrics'
import type { SandboxMetric } from '@atoll/contracts/metrics'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../app/teams/auth.ts'
import type { Metrics } from '../app/metrics/metrics.ts'
import type { UsageAt } from '../domain/metrics.ts'
import { addTeamRoute } from './server/route.ts'

export function addMetricRoutes(
  server: FastifyInstance,
  { authenticate, metrics }: { readonly authenticate: Authenticate; readonly metrics: Metrics },
): void {
  addTeamRoute(server, getTeamMetrics, authenticate, async ({ params, query }, caller) => {
    const request = { callerTeamId: caller.teamId, teamId: params.teamID, ...query }
    const points = await metrics.ofTeam(request)
    const body = points.map(({ at, concurrent, startsPerSecond }) => ({
      ...timesOf(at),
      concurrentSandboxes: concurrent,
      sandboxStartRate: startsPerSecond,
    }))
    return { status: 200, body }
  })
  addTeamRoute(server, getTeamMetricsMax, authenticate, async ({ params, query }, caller) => {
    const { metric, ...range } = query
    const request = { callerTeamId: caller.teamId, teamId: params.teamID, ...range }
    const { at, value } = await metrics.peakOfTeam(request, metricNames[metric])
    return { status: 200, body: { ...timesOf(at), value } }
  })
  addTeamRoute(server, getSandboxMetrics, authenticate, async ({ params, query }, { teamId }) => {
    const samples = await metrics.ofSandbox(teamId, params.sandboxID, query)
    return { status: 200, body: samples.map(toView) }
  })
  addTeamRoute(server, listSandboxMetrics, authenticate, async ({ query }, { teamId }) => {
    const samples = await metrics.newest(teamId, query.sandbox_ids)
    const entries = samples.map((sample) => [sample.sandboxId, toView(sample)] as const)
    return { status: 200, body: { sandboxes: Object.fromEntries(entries) } }
  })
}

const metricNames = { concurrent_sandboxes: 'concurrent', sandbox_start_rate: 'started' } as const

function toView(sample: UsageAt): z.infer<typeof SandboxMetric> {
  return {
    ...timesOf(sample.at),
    cpuCount: sample.cpuCount,
    cpuUsedPct: sample.cpuUsedPercent,
    memUsed: sample.memoryUsedBytes,
    memTotal: sample.memoryTotalBytes,
    memCache: sample.memoryCacheBytes,
    diskUsed: sample.diskUsedBytes,
    diskTotal: sample.diskTotalBytes,
  }
}

function timesOf(at: number) {
  return { timestamp: new Date(at * 1000).toISOString(), timestampUnix: at }
}
