import { styleText } from 'node:util'

/** Columns as wide as their widest cell, two spaces apart. The stream decides whether the head is bold. */
export function formatTable(
  stream: NodeJS.WritableStream,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
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

/** `4m ago`, `in 58s`: what a reader of a list wants to know; the exact time is in `--json`. */
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

/** MB and GB as the settings have them: by 1,024. */
export function formatSize(bytes: number): string {
  const megabytes = bytes / 1024 / 1024
  return megabytes < 1024 ? `${Math.ceil(megabytes)} MB` : `${(megabytes / 1024).toFixed(1)} GB`
}
