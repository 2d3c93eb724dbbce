import type { Clock } from '@atoll/kit/clock'
import { sampleSeconds, windowOf } from '../domain/metrics.ts'
import type { TeamMetricStore, TeamSample } from '../domain/metrics.ts'

/** Clocks are set: however far the next sample is, look again by then. */
const longestWaitMs = 1_000
/** A start may be written down a little after its moment; these seconds before the last sample are counted again. */
const recountSeconds = 4 * sampleSeconds

/**
 * Makes the pass that samples what teams run, once every 5 seconds. Starts are counted from the records of sandboxes,
 * from the last sample on: neither a restart nor a second process loses one or counts it twice. A team with nothing
 * to tell has no sample, but for the first zero after something ran.
 */
export function createTeamSampling(deps: {
  readonly teams: TeamMetricStore
  readonly clock: Clock
}): () => Promise<number> {
  const { teams, clock } = deps
  let sampled: number | undefined
  return async () => {
    const at = windowOf(clock.now())
    if (at !== sampled) await teams.record(await takeSamples(teams, at))
    sampled = at
    return waitAfter(clock.now())
  }
}

async function takeSamples(teams: TeamMetricStore, at: number): Promise<TeamSample[]> {
  const last = await teams.lastSampleAt()
  const running = await teams.countRunning()
  const silent = last === undefined || last === at ? [] : await teams.listActive(last)
  // A clock that was set back must not hide the starts until it is where it was.
  const since = last === undefined ? 0 : Math.min(last, at) - recountSeconds
  const starts = await teams.countStarts(since)
  const gauges = [...new Set([...running.keys(), ...silent])].map((teamId) => ({
    teamId,
    at,
    concurrent: running.get(teamId) ?? 0,
    started: 0,
  }))
  const samples = new Map(gauges.map((sample) => [keyOf(sample), sample]))
  for (const start of starts) {
    const concurrent = samples.get(keyOf(start))?.concurrent ?? 0
    samples.set(keyOf(start), { ...start, concurrent })
  }
  return [...samples.values()]
}

function keyOf({ teamId, at }: { readonly teamId: string; readonly at: number }): string {
  return `${teamId} ${at}`
}

/** Milliseconds until the next sample is due. */
export function waitAfter(now: Date): number {
  const intervalMs = sampleSeconds * 1000
  return Math.min(intervalMs - (now.getTime() % intervalMs), longestWaitMs)
}
