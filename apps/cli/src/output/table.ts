import { styleText } from 'node:util'
import { visibleName } from './visible-text.ts'

/** Prints aligned columns. Hostile characters in cells become visible. */
export function printTable(
  stream: NodeJS.WritableStream,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): void {
  stream.write(`${formatTable(stream, head, rows)}\n`)
}

/** Aligns columns with two spaces between them. The header is bold if the stream supports it. */
export function formatTable(
  stream: NodeJS.WritableStream,
  head: readonly string[],
  content: readonly (readonly string[])[],
): string {
  const rows = content.map((row) => row.map(visibleName))
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const toLine = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [styleText('bold', toLine(head), { stream }), ...rows.map(toLine)].join('\n')
}

/** Formats a time as `4m ago` or `in 58s`. `--json` has the exact time. */
export function formatRelative(time: string, now: Date): string {
  const seconds = Math.round((Date.parse(time) - now.getTime()) / 1000)
  return seconds >= 0 ? `in ${formatSpan(seconds)}` : `${formatSpan(-seconds)} ago`
}

function formatSpan(seconds: number): string {
  if (seconds < 120) return `${seconds}s`
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** Formats a size in MB or GB of 1,024, as in the settings. */
export function formatSize(bytes: number): string {
  const megabytes = bytes / 1024 / 1024
  return megabytes < 1024 ? `${Math.ceil(megabytes)} MB` : `${(megabytes / 1024).toFixed(1)} GB`
}
