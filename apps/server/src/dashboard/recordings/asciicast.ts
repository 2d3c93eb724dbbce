/** Lines of an asciicast v2 file: a header, then one event per line. */
export interface CastSize {
  readonly cols: number
  readonly rows: number
}

export function formatHeader(size: CastSize, startedAt: Date, title: string): string {
  return toLine({
    version: 2,
    width: size.cols,
    height: size.rows,
    timestamp: Math.floor(startedAt.getTime() / 1_000),
    title,
    env: { TERM: 'xterm-256color', SHELL: '/bin/bash' },
  })
}

export function formatOutput(seconds: number, text: string): string {
  return toLine([round(seconds), 'o', text])
}

export function formatResize(seconds: number, { cols, rows }: CastSize): string {
  return toLine([round(seconds), 'r', `${cols}x${rows}`])
}

function toLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}

function round(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6
}
