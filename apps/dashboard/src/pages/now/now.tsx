import type { SandboxMetric, TeamMetric, Template } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { api, dashboardApi } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { useEndedSandboxes, useSandboxList } from '../../data/sandboxes.ts'
import { currentSession } from '../../data/session.ts'
import { findAttention } from '../../model/attention.ts'
import type { DeniedConnection } from '../../model/attention.ts'
import { Plot } from '../../parts/plot.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { AttentionList } from './attention-list.tsx'

const hourSeconds = 3_600
const pageRows = 100

export function NowPage() {
  const { limits } = currentSession()
  const { running, paused, templates, attention } = useNow()
  const all = templates.data ?? []
  const building = all.filter(({ buildStatus }) => buildStatus === 'building').length
  const isLoading = running.data === undefined || templates.data === undefined
  return (
    <div class="page">
      <div class="page-head">
        <h1>Now</h1>
        <a class="button main" href="/sandboxes?new=1">
          New sandbox
        </a>
      </div>
      <ErrorNote resource={running} />
      <section class="panel" aria-label="Needs attention">
        <div class="panel-head">
          <h2>Needs attention</h2>
        </div>
        {isLoading ? <Skeleton lines={2} /> : <AttentionList items={attention} />}
      </section>
      <div class="tiles">
        <Tile
          label="Running"
          value={running.data?.total}
          most={limits.concurrentSandboxes}
          href="/sandboxes?state=running"
        />
        <Tile label="Paused" value={paused.data?.total} href="/sandboxes?state=paused" />
        <Tile label="Templates" value={templates.data?.length} href="/templates" />
        <Tile
          label="Builds under way"
          value={building}
          most={limits.concurrentBuilds}
          href="/templates"
        />
      </div>
      <TeamPlots />
    </div>
  )
}

/** Lists of the sandboxes that end first and that use most memory: one page each, however many there are. */
function useNow() {
  const running = useSandboxList('state=running&sort=ends&order=asc', pageRows)
  const largest = useSandboxList('state=running&sort=memory&order=desc', pageRows)
  const paused = useSandboxList('state=paused&sort=started&order=desc', pageRows)
  const ended = useEndedSandboxes()
  const denied = useDenied()
  const templates = useResource(
    'templates',
    (signal) => api<Template[]>('GET', '/templates', undefined, signal),
    10_000,
  )
  const memory = useMemory((largest.data?.items ?? []).map(({ sandboxID }) => sandboxID))
  const attention = findAttention({
    ending: running.data?.items ?? [],
    largest: largest.data?.items ?? [],
    templates: templates.data ?? [],
    memory: memory.data ?? {},
    ended: ended.data ?? [],
    denied: denied.data?.denied ?? [],
    now: now.value,
  })
  return { running, paused, templates, attention }
}

function useMemory(ids: readonly string[]) {
  return useResource(
    'now-usage',
    async (signal) => {
      if (ids.length === 0) return {}
      const path = `/sandboxes/metrics?sandbox_ids=${ids.join(',')}`
      return (
        await api<{ sandboxes: Record<string, SandboxMetric> }>('GET', path, undefined, signal)
      ).sandboxes
    },
    5_000,
  )
}

function useDenied() {
  return useResource(
    'sandboxes/denied',
    (signal) => dashboardApi<{ denied: DeniedConnection[] }>('GET', '/denied', undefined, signal),
    10_000,
  )
}

function TeamPlots() {
  const { teamId } = currentSession()
  const metrics = useResource(
    `team-metrics/${teamId}`,
    (signal) => {
      const start = Math.floor(Date.now() / 1000) - hourSeconds
      return api<TeamMetric[]>('GET', `/teams/${teamId}/metrics?start=${start}`, undefined, signal)
    },
    10_000,
  )
  const whole = (value: number) => (Number.isInteger(value) ? String(value) : '')
  return (
    <div class="two">
      <TeamPlot
        title="Concurrent sandboxes"
        metrics={metrics.data}
        read={(point) => point.concurrentSandboxes}
        format={whole}
      />
      <TeamPlot
        title="Starts per second"
        metrics={metrics.data}
        read={(point) => point.sandboxStartRate}
        format={(value) => value.toFixed(2)}
      />
    </div>
  )
}

function Tile({
  label,
  value,
  most,
  href,
}: {
  readonly label: string
  readonly value: number | undefined
  readonly most?: number
  readonly href: string
}) {
  const share = most ? Math.min(1, (value ?? 0) / most) : 0
  return (
    <a class="panel tile" href={href}>
      <span class="soft">{label}</span>
      <strong>
        {value ?? '–'}
        {most !== undefined && <span class="faint"> / {most}</span>}
      </strong>
      {most !== undefined && (
        <div class="meter">
          <i class={share > 0.9 ? 'high' : ''} style={{ width: `${share * 100}%` }} />
        </div>
      )}
    </a>
  )
}

function TeamPlot({
  title,
  metrics,
  read,
  format,
}: {
  readonly title: string
  readonly metrics: readonly TeamMetric[] | undefined
  readonly read: (point: TeamMetric) => number
  readonly format: (value: number) => string
}) {
  const values = (metrics ?? []).map(read)
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>{title}</h2>
        <span class="soft number">last hour · max {format(Math.max(0, ...values))}</span>
      </div>
      <div class="panel-body">
        <Plot
          times={(metrics ?? []).map(({ timestampUnix }) => timestampUnix)}
          series={[{ label: title, color: '--accent', values, isFilled: true }]}
          format={format}
          top={1}
          spanSeconds={hourSeconds}
          label={title}
        />
      </div>
    </section>
  )
}
