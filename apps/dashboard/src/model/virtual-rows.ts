export interface RowRange {
  readonly first: number
  /** Exclusive. */
  readonly last: number
  readonly topPx: number
  readonly totalPx: number
}

const overscanRows = 8

/** Returns the rows of a fixed height that are in view, with a few beyond the edges. */
export function rowsInView(view: {
  readonly count: number
  readonly rowPx: number
  readonly scrollPx: number
  readonly heightPx: number
}): RowRange {
  const { count, rowPx, scrollPx, heightPx } = view
  const first = Math.max(0, Math.min(count, Math.floor(scrollPx / rowPx)) - overscanRows)
  const last = Math.min(count, Math.ceil((scrollPx + heightPx) / rowPx) + overscanRows)
  return {
    first: Math.min(first, last),
    last,
    topPx: Math.min(first, last) * rowPx,
    totalPx: count * rowPx,
  }
}
