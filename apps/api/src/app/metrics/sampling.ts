import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { TeamMetricStore, UsageStore } from '../../domain/metrics.ts'
import type { Fleet } from '../nodes/fleet.ts'
import { forgetMetrics } from './forget-metrics.ts'
import { startLoop } from '../loop.ts'
import { createTeamSampling } from './sample-teams.ts'
import { createUsageSampling } from './sample-usage.ts'

/**
 * Takes samples and deletes old ones until closed. Separate loops, so that an unreachable node stops only usage
 * sampling.
 */
export function startSampling(deps: {
  readonly teams: TeamMetricStore
  readonly usage: UsageStore
  readonly fleet: Pick<Fleet, 'forEach'>
  readonly clock: Clock
  readonly log: Logger
}): { close(): Promise<void> } {
  const { log, usage, clock, fleet } = deps
  const loops = [
    startLoop('sample teams', createTeamSampling(deps), log),
    fleet.forEach(({ sandboxes: node }) =>
      startLoop('sample usage', createUsageSampling({ usage, clock, node }), log),
    ),
    startLoop('forget metrics', () => forgetMetrics(deps), log),
  ]
  return {
    async close() {
      await Promise.all(loops.map((loop) => loop.close()))
    },
  }
}
