import type { ComponentChildren } from 'preact'
import type { SandboxMetric } from '@atoll/client/replies'
import { formatBytes } from '../../model/format.ts'
import type { Mark } from '../../model/timeline.ts'
import { Plot } from '../../parts/plot.tsx'
import type { Series } from '../../parts/plot.tsx'

/** CPU, memory and disk since the start, with the limits as dashed lines. */
export function UsagePoints({
  points,
  marks = [],
}: {
  readonly points: SandboxMetric[] | undefined
  readonly marks?: readonly Mark[]
}) {
  if (points?.length === 0)
    return <p class="soft">The first measurement appears after about five seconds.</p>
  return (
    <div class="three">
      {plots.map((plot) => (
        <UsagePlot key={plot.title} {...plot} points={points ?? []} marks={marks} />
      ))}
    </div>
  )
}

interface PlotShape {
  readonly title: string
  readonly used: (point: SandboxMetric) => number
  /** Absent: a percentage, whose limit is 100. */
  readonly limit?: (point: SandboxMetric) => number
  readonly format: (value: number) => string
}

const plots: readonly PlotShape[] = [
  { title: 'CPU', used: (point) => point.cpuUsedPct, format: (value) => `${Math.round(value)} %` },
  {
    title: 'Memory',
    used: (point) => point.memUsed,
    limit: (point) => point.memTotal,
    format: formatBytes,
  },
  {
    title: 'Disk',
    used: (point) => point.diskUsed,
    limit: (point) => point.diskTotal,
    format: formatBytes,
  },
]

function UsagePlot({
  title,
  used,
  limit,
  format,
  points,
  marks,
}: PlotShape & {
  readonly points: readonly SandboxMetric[]
  readonly marks: readonly Mark[]
}) {
  const last = points.at(-1)
  const series: Series[] = [
    { label: title, color: '--accent', values: points.map(used), isFilled: true },
  ]
  if (limit)
    series.push({ label: 'Limit', color: '--bad', values: points.map(limit), isDashed: true })
  const whole = last && limit ? ` of ${format(limit(last))}` : ''
  return (
    <Panel title={title} value={last ? `${format(used(last))}${whole}` : ''}>
      <Plot
        label={`${title} over time`}
        times={points.map(({ timestampUnix }) => timestampUnix)}
        format={format}
        marks={marks}
        series={series}
        {...(limit ? { isBytes: true } : { top: 100 })}
      />
    </Panel>
  )
}

function Panel({
  title,
  value,
  children,
}: {
  readonly title: string
  readonly value: string
  readonly children: ComponentChildren
}) {
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{title}</h2>
        <span class="soft number">{value}</span>
      </div>
      <div class="panel-body">{children}</div>
    </section>
  )
}
