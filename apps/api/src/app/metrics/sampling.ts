import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { TeamMetricStore, UsageStore } from '../../domain/metrics.ts'
import type { LiveApis } from '../live-apis.ts'
import { idOf } from '../nodes/fleet.ts'
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

/** Decides which api samples the teams, as the ID of a node does for the sandboxes of the node. */
const teamsKey = 'teams'

/**
 * Takes samples and deletes old ones until closed. Separate loops, so that an unreachable node stops only usage
 * sampling. Each node is sampled by one of the apis, and so are the teams.
 */
export function startSampling(deps: {
  readonly teams: TeamMetricStore
  readonly usage: UsageStore
  readonly fleet: Pick<Fleet, 'forEachRegistered' | 'size'>
  readonly liveApis: Pick<LiveApis, 'isMine'>
  readonly clock: Clock
  readonly log: Logger
}): { close(): Promise<void> } {
  const { log, usage, clock, fleet, teams, liveApis } = deps
  const record = createUsageBatches(usage.record, () => fleet.size() < 2)
  const ofTeams = () => liveApis.isMine(teamsKey)
  const loops = [
    startLoop('sample teams', createTeamSampling({ teams, clock, isMine: ofTeams }), log),
    fleet.forEachRegistered((member) => {
      const share = Math.random()
      const phaseMs = () => share * spreadOf(fleet.size())
      const isMine = () => liveApis.isMine(idOf(member))
      const node = member.sandboxes
      const pass = createUsageSampling({ usage: { record }, clock, node, phaseMs, isMine })
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
