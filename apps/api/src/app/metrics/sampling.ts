import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { TeamMetricStore, UsageStore } from '../../domain/metrics.ts'
import type { Fleet } from '../nodes/fleet.ts'
import { forgetMetrics } from './forget-metrics.ts'
import { retryMs, startLoop } from '../loop.ts'
import { paceOf } from '../nodes/pace.ts'
import { createTeamSampling } from './sample-teams.ts'
import { createUsageSampling } from './sample-usage.ts'
import { createUsageBatches } from './usage-batches.ts'

const longestSpreadMs = 4_000
const spreadPerNodeMs = 20

/** Spreads the questions of one interval: those to all nodes of a large fleet at once would hold up requests. */
function spreadOf(nodeCount: number): number {
  return nodeCount < 2 ? 0 : Math.min(nodeCount * spreadPerNodeMs, longestSpreadMs)
}

/**
 * Takes samples and deletes old ones until closed. Separate loops, so that an unreachable node stops only usage
 * sampling.
 */
export function startSampling(deps: {
  readonly teams: TeamMetricStore
  readonly usage: UsageStore
  readonly fleet: Pick<Fleet, 'forEachRegistered' | 'size'>
  readonly clock: Clock
  readonly log: Logger
}): { close(): Promise<void> } {
  const { log, usage, clock, fleet } = deps
  const record = createUsageBatches(usage.record, () => fleet.size() < 2)
  const loops = [
    startLoop('sample teams', createTeamSampling(deps), log),
    fleet.forEachRegistered(({ sandboxes: node }) => {
      const share = Math.random()
      const phaseMs = () => share * spreadOf(fleet.size())
      const pass = createUsageSampling({ usage: { record }, clock, node, phaseMs })
      return startLoop('sample usage', pass, log, () => paceOf(retryMs, fleet.size()))
    }),
    startLoop('forget metrics', () => forgetMetrics(deps), log),
  ]
  return {
    async close() {
      await Promise.all(loops.map((loop) => loop.close()))
    },
  }
}
