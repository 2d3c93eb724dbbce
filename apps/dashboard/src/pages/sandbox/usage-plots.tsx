import type { ComponentChildren } from 'preact'
import type { SandboxMetric } from '@atoll/client/replies'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatBytes } from '../../model/format.ts'
import { Plot } from '../../parts/plot.tsx'
import type { Series } from '../../parts/plot.tsx'
import { ErrorNote } from '../../parts/status.tsx'

const pollMs = 5_000

/** CPU, memory and disk since the start, with the limits as dashed lines. */
export function UsagePlots({ id }: { readonly id: string }) {
  const metrics = useResource(
    `sandbox/${id}/metrics`,
    (signal) =>
      api<SandboxMetric[]>(
        'GET',
        `/sandboxes/${encodeURIComponent(id)}/metrics`,
        undefined,
        signal,
      ),
    pollMs,
  )
  if (metrics.data?.length === 0)
    return <p class="soft">The first measurement appears after about five seconds.</p>
  return (
    <>
      <ErrorNote resource={metrics} />
      <div class="three">
        {plots.map((plot) => (
          <UsagePlot key={plot.title} {...plot} points={metrics.data ?? []} />
        ))}
      </div>
    </>
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
}: PlotShape & { readonly points: readonly SandboxMetric[] }) {
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
