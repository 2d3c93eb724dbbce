/** Statistics of one row. Machines are noisy, so compare medians, and prefer ratios to absolute numbers. */
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

/** Nearest-rank percentile, which is always a measured value. Below 100 samples p99 is the largest value. */
function percentile(sorted: readonly number[], percent: number): number {
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length))
  const value = sorted[rank - 1]
  if (value === undefined) throw new Error('Cannot summarize a row without samples')
  return value
}

/** Returns the ratio of the medians. */
export function ratio(measured: Summary, baseline: Summary): number {
  return measured.p50 / baseline.p50
}

/** Rotates the order, so that a measurement does not always run after the same neighbour. */
export function rotate<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}
