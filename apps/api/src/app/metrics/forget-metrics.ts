import type { Clock } from '@atoll/kit/clock'
import { teamRetentionSeconds, usageRetentionSeconds } from '../../domain/metrics.ts'
import type { TeamMetricStore, UsageStore } from '../../domain/metrics.ts'

const intervalMs = 60_000
/** Delay between batches, so that other queries can use the store. */
const pauseMs = 1_000

/** One pass: deletes a batch of expired samples. */
export async function forgetMetrics(deps: {
  readonly teams: TeamMetricStore
  readonly usage: UsageStore
  readonly clock: Clock
}): Promise<number> {
  const { teams, usage, clock } = deps
  const now = Math.floor(clock.now().getTime() / 1000)
  const isMore = [
    await teams.deleteBefore(now - teamRetentionSeconds),
    await usage.deleteBefore(now - usageRetentionSeconds),
  ]
  return isMore.includes(true) ? pauseMs : intervalMs
}
