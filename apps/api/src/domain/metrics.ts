import { Fault } from '@atoll/kit/fault'

/** Samples over time: how they are grouped, which ranges may be asked for, and what one reading says. */

export const sampleSeconds = 5

/** All times are Unix seconds; both ends belong to the range. */
export interface Range {
  readonly start: number
  readonly end: number
}

export interface TeamSample {
  readonly teamId: string
  /** Where its 5 seconds begin. */
  readonly at: number
  readonly concurrent: number
  readonly started: number
}

/** One step of a series; `concurrent` is the most of any sample in it. */
export interface TeamStep {
  readonly at: number
  readonly concurrent: number
  readonly started: number
}

export interface Peak {
  readonly at: number
  readonly value: number
}

export interface Usage {
  readonly cpuCount: number
  /** Of all its CPUs together. */
  readonly cpuUsedPercent: number
  /** Without the cache. */
  readonly memoryUsedBytes: number
  readonly memoryCacheBytes: number
  readonly memoryTotalBytes: number
  readonly diskUsedBytes: number
  readonly diskTotalBytes: number
}

export interface UsageAt extends Usage {
  readonly at: number
}

export interface UsageSample extends UsageAt {
  readonly sandboxId: string
}

/** As a node reads it: CPU time is counted from the start of the sandbox, on the node's own clock. */
export interface Reading extends Omit<Usage, 'cpuUsedPercent'> {
  readonly sandboxId: string
  readonly cpuUsedNs: number
  readonly readAtNs: number
  readonly ageNs: number
}

export interface TeamMetricStore {
  /** How many sandboxes of each team run at this moment. */
  countRunning(): Promise<ReadonlyMap<string, number>>
  /** Starts since this moment, for each team and sample they fall into. */
  countStarts(since: number): Promise<Omit<TeamSample, 'concurrent'>[]>
  /** The newest sample of any team. */
  lastSampleAt(): Promise<number | undefined>
  /** Teams that had something running at that sample. */
  listActive(at: number): Promise<string[]>
  /** Of two samples for the same 5 seconds the larger numbers stay: a window may be counted again. */
  record(samples: readonly TeamSample[]): Promise<void>
  series(teamId: string, range: Range, stepSeconds: number): Promise<TeamStep[]>
  peak(teamId: string, range: Range, metric: TeamMetricName): Promise<Peak | undefined>
  /** Deletes a bounded number of samples older than this; says whether there may be more of them. */
  deleteBefore(time: number): Promise<boolean>
}

export type TeamMetricName = 'concurrent' | 'started'

export interface UsageStore {
  record(samples: readonly UsageSample[]): Promise<void>
  /** The times of the first and the last sample, if the team has such a sandbox with samples. */
  rangeOf(teamId: string, sandboxId: string): Promise<Range | undefined>
  /** The largest value of every column in each step. */
  series(sandboxId: string, range: Range, stepSeconds: number): Promise<UsageAt[]>
  /** The newest sample of each of these sandboxes that is the team's. */
  latest(teamId: string, sandboxIds: readonly string[]): Promise<UsageSample[]>
  deleteBefore(time: number): Promise<boolean>
}

const hour = 3600
const day = 24 * hour

export const defaultRangeSeconds = 7 * day
export const teamRetentionSeconds = 90 * day
export const usageRetentionSeconds = 7 * day

const latest = Date.UTC(2299, 11, 31, 23, 59, 59) / 1000

export function checkRange({ start, end }: Range): void {
  for (const [name, value] of Object.entries({ start, end })) {
    if (value > latest) throw badRange(`${name} must not be after the year 2299`)
  }
  if (start > end) throw badRange('start must not be after end')
}

function badRange(message: string): Fault {
  return new Fault('invalid', 'invalid_range', message)
}

const steps = [
  { below: hour, stepSeconds: sampleSeconds },
  { below: 6 * hour, stepSeconds: 30 },
  { below: 12 * hour, stepSeconds: 60 },
  { below: day, stepSeconds: 120 },
  { below: 7 * day, stepSeconds: 300 },
] as const
const longestStep = 900

/** The longer the range, the longer its steps. */
export function stepOf({ start, end }: Range): number {
  return steps.find(({ below }) => end - start < below)?.stepSeconds ?? longestStep
}

/** The 5 seconds that a moment belongs to, by their beginning. */
export function windowOf(now: Date): number {
  return Math.floor(now.getTime() / 1000 / sampleSeconds) * sampleSeconds
}

/** What the first reading of a sandbox is compared with: its start, unless that is so long ago that it says little of now. */
export function beforeFirst({ readAtNs, ageNs }: Reading): CpuReading | undefined {
  return ageNs <= 2 * sampleSeconds * 1e9 ? { cpuUsedNs: 0, readAtNs: readAtNs - ageNs } : undefined
}

export type CpuReading = Pick<Reading, 'cpuUsedNs' | 'readAtNs'>

/** Between two readings, in percent of what all its CPUs could have given, with two decimals. */
export function cpuPercent(before: CpuReading, { cpuUsedNs, readAtNs, cpuCount }: Reading): number {
  const possibleNs = (readAtNs - before.readAtNs) * cpuCount
  if (possibleNs <= 0) return 0
  const percent = (100 * (cpuUsedNs - before.cpuUsedNs)) / possibleNs
  // Counters of several cores are not read in one instant: a little more than everything is everything.
  return Math.round(Math.min(100, Math.max(0, percent)) * 100) / 100
}
