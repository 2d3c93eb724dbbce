/** Text for numbers and times. All functions are pure: the present is an argument. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

/** Renders the two largest units: `2 d 3 h`, `4 min 10 s`, `12 s`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3_600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  if (first < 0) return '0 s'
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}

export function formatAge(time: string | null | undefined, now: number): string {
  if (!time) return 'never'
  const seconds = (now - Date.parse(time)) / 1000
  if (Number.isNaN(seconds)) return 'unknown'
  return seconds < 1 ? 'just now' : `${formatDuration(seconds)} ago`
}

export function secondsUntil(time: string, now: number): number {
  return Math.max(0, (Date.parse(time) - now) / 1000)
}

export function formatClock(time: string | number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleTimeString(undefined, { hour12: false })
}

/** Parses `90`, `90s`, `10m`, `2h` or `1d` to seconds. */
export function parseDuration(text: string): number | undefined {
  const match = /^\s*(\d{1,9})\s*(s|m|min|h|d)?\s*$/.exec(text)
  if (!match?.[1]) return undefined
  const factor = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 }[match[2] ?? 's'] ?? 1
  return Number(match[1]) * factor
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US')
}
