import { visibleName } from '../output/visible-text.ts'

const levels: ReadonlyMap<unknown, string> = new Map([
  [10, 'trace'],
  [20, 'debug'],
  [30, 'info'],
  [40, 'warn'],
  [50, 'error'],
  [60, 'fatal'],
])

/** Formats one JSON line of the server log as one line for people. Lines that are no such JSON stay as they are. */
export function formatLogLine(line: string): string {
  const entry = parse(line)
  if (!entry || typeof entry['time'] !== 'number') return visibleName(line)
  const { time, level, event, msg, err, ...rest } = entry
  const details = Object.entries(rest).map(([name, value]) => `${name}=${formatValue(value)}`)
  const words = [
    Number.isFinite(time) && Math.abs(time) < 8.64e15 ? new Date(time).toISOString() : String(time),
    (levels.get(level) ?? String(level)).padEnd(5),
    event ?? '',
    msg ?? '',
    details.length > 0 ? `[${details.join(' ')}]` : '',
    err === undefined ? '' : formatError(err),
  ]
  return visibleName(words.map(String).filter(Boolean).join(' '))
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function formatValue(value: unknown): string {
  return typeof value === 'string' && /^\S+$/.test(value) ? value : JSON.stringify(value)
}

/** The message with its causes; `--json` has the stack too. */
function formatError(err: unknown): string {
  const message = typeof err === 'object' && err !== null && 'message' in err ? err.message : err
  return `error: ${typeof message === 'string' ? message : JSON.stringify(message)}`
}
