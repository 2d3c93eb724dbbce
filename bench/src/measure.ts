/** What is said of a row of times. Machines are noisy: the median tells most, and a ratio more than either number. */
export interface Summary {
  readonly count: number
  readonly min: number
  readonly p50: number
  readonly p99: number
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = samples.toSorted((a, b) => a - b)
  return {
    count: sorted.length,
    min: percentile(sorted, 0),
    p50: percentile(sorted, 50),
    p99: percentile(sorted, 99),
  }
}

/** By nearest rank: always a time that was really measured. Below 100 samples the 99th is the largest. */
function percentile(sorted: readonly number[], percent: number): number {
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length))
  const value = sorted[rank - 1]
  if (value === undefined) throw new Error('a summary of no samples')
  return value
}

/** How many times as long as the baseline, by the medians. */
export function ratio(measured: Summary, baseline: Summary): number {
  return measured.p50 / baseline.p50
}

/** The same row begun elsewhere: interleaved measurements must not always have the same neighbour before them. */
export function rotate<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}
