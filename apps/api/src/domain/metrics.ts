import { Fault } from '@atoll/kit/fault'

/** Metrics: sampling windows, permitted ranges, and usage computed from node readings. */

export const sampleSeconds = 5

/** Unix seconds, both ends inclusive. */
export interface Range {
  readonly start: number
  readonly end: number
}

export interface TeamSample {
  readonly teamId: string
  /** Start of the 5-second window. */
  readonly at: number
  readonly concurrent: number
  readonly started: number
}

/** Aggregated step of a series; `concurrent` is the maximum of its samples. */
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
  /** Percentage of all CPUs together. */
  readonly cpuUsedPercent: number
  /** Excludes the page cache. */
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

/** Raw reading of a node. CPU time counts from the start of the sandbox; `readAtNs` uses the clock of the node. */
export interface Reading extends Omit<Usage, 'cpuUsedPercent'> {
  readonly sandboxId: string
  readonly cpuUsedNs: number
  readonly readAtNs: number
  readonly ageNs: number
}

export interface TeamMetricStore {
  /** Number of running sandboxes per team. */
  countRunning(): Promise<ReadonlyMap<string, number>>
  /** Starts since `since`, per team and sampling window. */
  countStarts(since: number): Promise<Omit<TeamSample, 'concurrent'>[]>
  /** Time of the newest sample of any team. */
  lastSampleAt(): Promise<number | undefined>
  /** Teams with running sandboxes in the sample at `at`. */
  listActive(at: number): Promise<string[]>
  /** Merges samples of the same window by maximum, because a window may be counted twice. */
  record(samples: readonly TeamSample[]): Promise<void>
  series(teamId: string, range: Range, stepSeconds: number): Promise<TeamStep[]>
  peak(teamId: string, range: Range, metric: TeamMetricName): Promise<Peak | undefined>
  /** Deletes a bounded number of samples older than `time`. Returns whether more may remain. */
  deleteBefore(time: number): Promise<boolean>
}

export type TeamMetricName = 'concurrent' | 'started'

export interface UsageStore {
  record(samples: readonly UsageSample[]): Promise<void>
  /** Times of the first and last sample. Undefined if the team has no such sandbox, or the sandbox has no samples. */
  rangeOf(teamId: string, sandboxId: string): Promise<Range | undefined>
  /** Maximum of every column per step. */
  series(sandboxId: string, range: Range, stepSeconds: number): Promise<UsageAt[]>
  /** Newest sample of each given sandbox that belongs to the team. */
  latest(teamId: string, sandboxIds: readonly string[]): Promise<UsageSample[]>
  deleteBefore(time: number): Promise<boolean>
}

const hour = 3600
const day = 24 * hour

export const defaultRangeSeconds = 7 * day
export const teamRetentionSeconds = 90 * day
export const usageRetentionSeconds = 7 * day

const maxUnixSeconds = Date.UTC(2299, 11, 31, 23, 59, 59) / 1000

export function checkRange({ start, end }: Range): void {
  for (const [name, value] of Object.entries({ start, end })) {
    if (value > maxUnixSeconds) throw badRange(`${name} must not be after the year 2299`)
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

/** Longer ranges have longer steps. */
export function stepOf({ start, end }: Range): number {
  return steps.find(({ below }) => end - start < below)?.stepSeconds ?? longestStep
}

/** Start of the 5-second window that contains `now`. */
export function windowOf(now: Date): number {
  return Math.floor(now.getTime() / 1000 / sampleSeconds) * sampleSeconds
}

/**
 * Baseline for the first reading of a sandbox: its start, or undefined when the start is too long ago for a useful
 * average.
 */
export function firstBaseline({ readAtNs, ageNs }: Reading): CpuReading | undefined {
  return ageNs <= 2 * sampleSeconds * 1e9 ? { cpuUsedNs: 0, readAtNs: readAtNs - ageNs } : undefined
}

export type CpuReading = Pick<Reading, 'cpuUsedNs' | 'readAtNs'>

/** CPU usage between two readings, in percent of all CPUs, rounded to two decimals. */
export function cpuPercent(before: CpuReading, { cpuUsedNs, readAtNs, cpuCount }: Reading): number {
  const possibleNs = (readAtNs - before.readAtNs) * cpuCount
  if (possibleNs <= 0) return 0
  const percent = (100 * (cpuUsedNs - before.cpuUsedNs)) / possibleNs
  // The counters of several cores are not read atomically, so the result can slightly exceed 100.
  return Math.round(Math.min(100, Math.max(0, percent)) * 100) / 100
}
