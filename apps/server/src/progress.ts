/** Shows the progress of long work: one updating line on a terminal, one line per step elsewhere. */
export interface ProgressView {
  report(label: string, fraction: number): void
  /** Clears the progress line for other output. */
  clear(): void
}

export interface Screen {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

const barWidth = 24
const stepPercent = 10

export function createProgressView(screen: Screen): ProgressView {
  return screen.isTTY ? updatingLine(screen) : plainLines(screen)
}

function updatingLine(screen: Screen): ProgressView {
  let isShown = false
  return {
    report(label, fraction) {
      const filled = Math.round(barWidth * bounded(fraction))
      const bar = '#'.repeat(filled) + '-'.repeat(barWidth - filled)
      const line = `[${bar}] ${percent(fraction)} % ${label}`
      screen.write(`\r\x1b[K${line.slice(0, (screen.columns ?? 80) - 1)}`)
      isShown = true
    },
    clear() {
      if (isShown) screen.write('\r\x1b[K')
      isShown = false
    },
  }
}

/** Prints a line only for a new label or another 10 percent, because a log keeps every line. */
function plainLines(screen: Screen): ProgressView {
  let last = { label: '', step: -1 }
  return {
    report(label, fraction) {
      const step = Math.floor(percent(fraction) / stepPercent)
      if (label === last.label && step === last.step) return
      last = { label, step }
      screen.write(`${percent(fraction)} % ${label}\n`)
    },
    clear() {},
  }
}

function percent(fraction: number): number {
  return Math.floor(100 * bounded(fraction))
}

function bounded(fraction: number): number {
  return Math.min(Math.max(fraction, 0), 1)
}
