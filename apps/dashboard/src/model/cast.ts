/** A recording of a terminal in asciicast v2. Lines that make no sense are skipped: a crash may have cut one. */
export interface Cast {
  readonly size: CastSize
  readonly events: readonly CastEvent[]
  /** Seconds. */
  readonly duration: number
}

export interface CastSize {
  readonly cols: number
  readonly rows: number
}

export type CastEvent =
  | { readonly at: number; readonly output: string }
  | { readonly at: number; readonly resize: CastSize }

const maxDimension = 500
/** Longer silences are shortened. */
const maxSilenceSeconds = 2
const defaultSize: CastSize = { cols: 80, rows: 24 }

export function parseCast(text: string): Cast {
  const [first = '', ...lines] = text.split('\n')
  const events: CastEvent[] = []
  let recordedAt = 0
  let at = 0
  for (const line of lines) {
    const event = parseEvent(line)
    if (!event) continue
    at += Math.min(maxSilenceSeconds, Math.max(0, event.at - recordedAt))
    recordedAt = Math.max(recordedAt, event.at)
    events.push({ ...event, at })
  }
  return { size: parseHeader(first), events, duration: at }
}

function parseHeader(line: string): CastSize {
  const header = parseJson(line)
  if (typeof header !== 'object' || header === null) return defaultSize
  const { width, height }: { width?: unknown; height?: unknown } = header
  return toSize(Number(width), Number(height)) ?? defaultSize
}

function parseEvent(line: string): CastEvent | undefined {
  const event = parseJson(line)
  if (!Array.isArray(event)) return undefined
  const [at, code, data]: unknown[] = event
  if (typeof at !== 'number' || !Number.isFinite(at) || typeof data !== 'string') return undefined
  if (code === 'o') return { at, output: data }
  if (code !== 'r') return undefined
  const [cols, rows] = data.split('x').map(Number)
  const resize = toSize(cols, rows)
  return resize && { at, resize }
}

function toSize(cols: number | undefined, rows: number | undefined): CastSize | undefined {
  return isDimension(cols) && isDimension(rows) ? { cols, rows } : undefined
}

function isDimension(value: number | undefined): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= maxDimension
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
