import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { checkRange, defaultRangeSeconds, sampleSeconds, stepOf } from '../../domain/metrics.ts'
import type {
  Peak,
  Range,
  TeamMetricName,
  TeamMetricStore,
  UsageAt,
  UsageSample,
  UsageStore,
} from '../../domain/metrics.ts'

/** Metrics of a team and its sandboxes. */
export interface Metrics {
  ofTeam(request: TeamRequest): Promise<TeamPoint[]>
  /** Returns value 0 at time 0 when there are no samples. */
  peakOfTeam(request: TeamRequest, metric: TeamMetricName): Promise<Peak>
  /** Returns nothing for a sandbox that is unknown or another team's. */
  ofSandbox(teamId: string, sandboxId: string, asked: RequestedRange): Promise<UsageAt[]>
  newest(teamId: string, sandboxIds: readonly string[]): Promise<UsageSample[]>
}

export interface RequestedRange {
  readonly start?: number | undefined
  readonly end?: number | undefined
}

export interface TeamRequest extends RequestedRange {
  readonly callerTeamId: string
  readonly teamId: string
}

export interface TeamPoint {
  readonly at: number
  readonly concurrent: number
  readonly startsPerSecond: number
}

export function createMetrics(deps: {
  readonly teams: TeamMetricStore
  readonly usage: UsageStore
  readonly clock: Clock
}): Metrics {
  const { teams, usage, clock } = deps
  /** Checks the team first, then the range. Each bound has its own default, even if start ends up after end. */
  const resolve = ({ callerTeamId, teamId, start, end }: TeamRequest): Range => {
    if (teamId !== callerTeamId) throw notYours()
    const now = Math.floor(clock.now().getTime() / 1000)
    const range = { start: start ?? now - defaultRangeSeconds, end: end ?? now }
    checkRange(range)
    return range
  }
  return {
    async ofTeam(request) {
      const range = resolve(request)
      const stepSeconds = stepOf(range)
      const steps = await teams.series(request.teamId, range, stepSeconds)
      return steps.map(({ at, concurrent, started }) => ({
        at,
        concurrent,
        startsPerSecond: started / stepSeconds,
      }))
    },
    async peakOfTeam(request, metric) {
      const range = resolve(request)
      const peak = (await teams.peak(request.teamId, range, metric)) ?? { at: 0, value: 0 }
      return metric === 'started' ? { ...peak, value: peak.value / sampleSeconds } : peak
    },
    async ofSandbox(teamId, sandboxId, { start, end }) {
      if (start !== undefined && end !== undefined) checkRange({ start, end })
      const all = await usage.rangeOf(teamId, sandboxId)
      if (!all) return []
      const range = { start: start ?? all.start, end: end ?? all.end }
      checkRange(range)
      return usage.series(sandboxId, range, stepOf(range))
    },
    newest: (teamId, sandboxIds) => usage.latest(teamId, sandboxIds),
  }
}

function notYours(): Fault {
  return new Fault(
    'forbidden',
    'not_your_team',
    'The credentials belong to another team: request the metrics of your own team',
  )
}
