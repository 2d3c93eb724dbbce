import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import type { Mark } from '../model/timeline.ts'
import { loadPart } from '../data/load-part.ts'
import { isDark } from '../data/theme.ts'
import { showError } from './toasts.tsx'

export interface Series {
  readonly label: string
  /** Name of a CSS variable. */
  readonly color: string
  readonly values: readonly (number | null)[]
  readonly isDashed?: boolean
  readonly isFilled?: boolean
}

interface PlotProps {
  /** Unix seconds. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  readonly top?: number
  readonly label: string
  /** Ticks at powers of two. */
  readonly isBytes?: boolean
  /** Length of the time axis up to now. Default: as long as the data. */
  readonly spanSeconds?: number
  /** Moments, drawn as vertical lines. */
  readonly marks?: readonly Mark[]
}

const heightPx = 160
const powersOfTwo = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent)

/** Draws lines over time. The library is loaded with the first plot. */
export function Plot(props: PlotProps) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const shape = props.series.map(({ label }) => label).join()
  const hasDarkColors = isDark.value
  const marks = useRef<readonly Mark[]>([])
  marks.current = props.marks ?? []
  useEffect(() => {
    let isGone = false
    const observer = new ResizeObserver(([entry]) => {
      if (entry) plot.current?.setSize({ width: entry.contentRect.width, height: heightPx })
    })
    const draw = async () => {
      const { default: UPlot } = await loadPart(() => import('uplot'))
      if (isGone || !host.current) return
      const element = host.current
      const options = optionsOf(props, element, () => marks.current)
      const hooks = { drawAxes: [(drawn: uPlot) => drawMarks(drawn, element, marks.current)] }
      plot.current = new UPlot({ ...options, hooks }, dataOf(props), element)
      observer.observe(host.current)
    }
    draw().catch(showError)
    return () => {
      isGone = true
      observer.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [shape, hasDarkColors])
  useEffect(() => plot.current?.setData(dataOf(props)))
  return <div ref={host} class="plot" role="img" aria-label={props.label} />
}

function dataOf({ times, series }: PlotProps): uPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])]
}

function optionsOf(
  { series, format, top, isBytes, spanSeconds }: PlotProps,
  host: HTMLElement,
  marks: () => readonly Mark[],
): uPlot.Options {
  const style = getComputedStyle(host)
  // A canvas needs colours, not variables; the element's own colour resolves light-dark().
  const color = (name: string) => resolveColor(host, name)
  const axis = { stroke: color('--faint'), font: `11px ${style.fontFamily}` }
  const grid = { stroke: color('--line'), width: 1 }
  return {
    width: host.clientWidth || 300,
    height: heightPx,
    legend: { show: false },
    cursor: { y: false },
    // Half of a time with seconds fits beside the last tick.
    padding: [8, 30, 4, 0],
    scales: {
      x: {
        range: (_plot, min, max) =>
          spanSeconds === undefined && max > 0
            ? includeMarks(min, max, marks())
            : [Date.now() / 1000 - (spanSeconds ?? 60), Date.now() / 1000],
      },
      y: { range: (_plot, _min, max) => [0, Math.max(top ?? 0, (max || 1) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ticks: { show: false },
        size: 24,
        values: clocks,
        space: 70,
      },
      {
        ...axis,
        grid,
        ticks: { show: false },
        ...(isBytes && { incrs: powersOfTwo }),
        size: 58,
        values: (_plot, ticks) => ticks.map(format),
      },
    ],
    series: [
      {},
      ...series.map((line) => ({
        label: line.label,
        stroke: color(line.color),
        width: 1.5,
        points: { show: false },
        ...(line.isDashed && { dash: [4, 4] }),
        ...(line.isFilled && { fill: `color-mix(in srgb, ${color(line.color)} 14%, transparent)` }),
      })),
    ],
  }
}

/** Events shortly before the first measurement and after the last one belong on the axis too. */
function includeMarks(min: number, max: number, marks: readonly Mark[]): [number, number] {
  const slack = Math.max(60, (max - min) / 4)
  const near = marks.map(({ at }) => at).filter((at) => at > min - slack && at < max + slack)
  return [Math.min(min, ...near), Math.max(max, ...near)]
}

function drawMarks(plot: uPlot, host: HTMLElement, marks: readonly Mark[]): void {
  const { ctx: canvas, bbox } = plot
  const { min = 0, max = 0 } = plot.scales['x'] ?? {}
  canvas.save()
  for (const { at, color } of marks) {
    if (at < min || at > max) continue
    const x = Math.round(plot.valToPos(at, 'x', true))
    canvas.fillStyle = resolveColor(host, color)
    canvas.fillRect(x, bbox.top, Math.max(1, devicePixelRatio), bbox.height)
  }
  canvas.restore()
}

function resolveColor(host: HTMLElement, name: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(${name})`
  host.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function clocks(_plot: uPlot, ticks: readonly number[]): string[] {
  const stepSeconds = (ticks[1] ?? 0) - (ticks[0] ?? 0)
  const detail = stepSeconds < 60 ? { second: '2-digit' as const } : {}
  const options = { hour: '2-digit', minute: '2-digit', ...detail, hour12: false } as const
  return ticks.map((seconds) => new Date(seconds * 1000).toLocaleTimeString(undefined, options))
}
