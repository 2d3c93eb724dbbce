import type { Clock } from '@atoll/kit/clock'
import { sampleSeconds, windowOf } from '../../domain/metrics.ts'
import type { TeamMetricStore, TeamSample } from '../../domain/metrics.ts'

/** Upper bound on the wait, because the system clock may jump. */
const maxWaitMs = 1_000
/** A start may be recorded late, so this many seconds before the last sample are counted again. */
const recountSeconds = 4 * sampleSeconds

/**
 * Creates the pass that samples team usage every 5 seconds. Starts are counted from the sandbox records since the last
 * sample, so neither a restart nor a second process loses a start or counts it twice. An idle team has no samples,
 * except for one zero after its last activity.
 */
export function createTeamSampling(deps: {
  readonly teams: TeamMetricStore
  readonly clock: Clock
  /** Whether this process samples the teams. */
  readonly isMine?: () => boolean
}): () => Promise<number> {
  const { teams, clock, isMine = () => true } = deps
  let sampled: number | undefined
  return async () => {
    const at = windowOf(clock.now())
    if (!isMine()) return waitAfter(clock.now())
    if (at !== sampled) await teams.record(await takeSamples(teams, at))
    sampled = at
    return waitAfter(clock.now())
  }
}

async function takeSamples(teams: TeamMetricStore, at: number): Promise<TeamSample[]> {
  const last = await teams.lastSampleAt()
  const running = await teams.countRunning()
  const silent = last === undefined || last === at ? [] : await teams.listActive(last)
  // If the clock was set back, count from the earlier time so that no starts are hidden.
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

/** Returns the milliseconds until the next sample is due, at most one second. */
export function waitAfter(now: Date): number {
  return Math.min(sampleSeconds * 1000 - passedMs(now), maxWaitMs)
}

/** Returns how much of the current interval has passed. */
export function passedMs(now: Date): number {
  return now.getTime() % (sampleSeconds * 1000)
}
