/** Formats results as a table and as JSON. */
import { ratio } from './measure.ts'
import type { Summary } from './measure.ts'

export interface Row {
  readonly name: string
  /** Values are in the unit of the report. */
  readonly summary: Summary
  /** Name of the row to compare with. Absent on baselines and on partial durations. */
  readonly baseline?: string
}

export interface ScenarioReport {
  readonly scenario: string
  readonly description: string
  /** Default: ms. */
  readonly unit?: string
  readonly rows: readonly Row[]
}

export function renderTable({ description, unit = 'ms', rows }: ScenarioReport): string {
  const head = ['', `p50 ${unit}`, `p99 ${unit}`, `min ${unit}`, 'ratio']
  const lines = rows.map((row) => {
    const { p50, p99, min } = row.summary
    return [row.name, decimal(p50), decimal(p99), decimal(min), ratioText(row, rows)]
  })
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((cells) => cells[column]?.length ?? 0)),
  )
  const table = [head, ...lines].map((cells) =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
  return `${description}\n\n${table.join('\n')}\n`
}

export function toJson(report: ScenarioReport): object {
  return {
    ...report,
    rows: report.rows.map((row) => ({ ...row, ratio: ratioOf(row, report.rows) })),
  }
}

function ratioText(row: Row, rows: readonly Row[]): string {
  const value = ratioOf(row, rows)
  return value === undefined ? '' : `${value.toFixed(2)}x`
}

function ratioOf(row: Row, rows: readonly Row[]): number | undefined {
  if (row.baseline === undefined) return undefined
  const baseline = rows.find(({ name }) => name === row.baseline)
  if (!baseline)
    throw new Error(`Row "${row.name}" is compared with a missing row: ${row.baseline}`)
  const value = ratio(row.summary, baseline.summary)
  // The baseline may be 0: an idle sandbox can use less than the kernel measures.
  return Number.isFinite(value) ? value : undefined
}

function decimal(value: number): string {
  return value.toFixed(1)
}
