import type { SandboxMetric, TeamMetric, Template } from '@atoll/client/replies'
import { now } from '../data/clock.ts'
import { api } from '../data/request.ts'
import { useResource } from '../data/resource.ts'
import { sandboxActions, thenReload, useEndedSandboxes, useSandboxes } from '../data/sandboxes.ts'
import { currentSession } from '../data/session.ts'
import { findAttention } from '../model/attention.ts'
import type { Attention } from '../model/attention.ts'
import { formatDuration } from '../model/format.ts'
import { sandboxPath, templatePath } from '../model/route.ts'
import { visibleName } from '../model/visible-text.ts'
import { Button } from '../parts/controls.tsx'
import { Plot } from '../parts/plot.tsx'
import { ErrorNote, Skeleton } from '../parts/status.tsx'

const hourSeconds = 3_600

export function NowPage() {
  const { limits } = currentSession()
  const { sandboxes, running, templates, attention } = useNow()
  const all = templates.data ?? []
  const building = all.filter(({ buildStatus }) => buildStatus === 'building').length
  const isLoading = sandboxes.data === undefined || templates.data === undefined
  const paused = (sandboxes.data ?? []).length - running.length
  return (
    <div class="page">
      <div class="page-head">
        <h1>Now</h1>
        <a class="button main" href="/sandboxes?new=1">
          New sandbox
        </a>
      </div>
      <ErrorNote resource={sandboxes} />
      <section class="panel" aria-label="Needs attention">
        <div class="panel-head">
          <h2>Needs attention</h2>
        </div>
        {isLoading ? <Skeleton lines={2} /> : <AttentionList items={attention} />}
      </section>
      <div class="tiles">
        <Tile
          label="Running"
          value={running.length}
          most={limits.concurrentSandboxes}
          href="/sandboxes?state=running"
        />
        <Tile label="Paused" value={paused} href="/sandboxes?state=paused" />
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

function useNow() {
  const sandboxes = useSandboxes()
  const ended = useEndedSandboxes()
  const templates = useResource(
    'templates',
    (signal) => api<Template[]>('GET', '/templates', undefined, signal),
    10_000,
  )
  const running = (sandboxes.data ?? []).filter(({ state }) => state === 'running')
  const ids = running.slice(0, 100).map(({ sandboxID }) => sandboxID)
  const usage = useResource(
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
  const attention = findAttention({
    sandboxes: running,
    templates: templates.data ?? [],
    memory: usage.data ?? {},
    ended: ended.data ?? [],
    now: now.value,
  })
  return { sandboxes, running, templates, attention }
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

const maxShown = 12

function AttentionList({ items }: { readonly items: readonly Attention[] }) {
  if (items.length === 0)
    return (
      <div class="panel-body soft">
        All is well. Nothing died, expires soon, runs out of memory or failed to build.
      </div>
    )
  return (
    <ul class="attention">
      {items.slice(0, maxShown).map((item) => (
        <li
          key={
            item.kind === 'build'
              ? item.template.templateID
              : `${item.kind}${item.sandbox.sandboxID}`
          }
        >
          <AttentionItem item={item} />
        </li>
      ))}
      {items.length > maxShown && <li class="soft">and {items.length - maxShown} more</li>}
    </ul>
  )
}

function AttentionItem({ item }: { readonly item: Attention }) {
  if (item.kind === 'build') {
    const { templateID, names } = item.template
    return (
      <>
        <span class="state error grow">
          <span>
            The last build of{' '}
            <a class="link" href={templatePath(templateID)}>
              {visibleName(names[0] ?? templateID, 60)}
            </a>{' '}
            failed
          </span>
        </span>
        <a class="button small" href={templatePath(templateID)}>
          See the log
        </a>
      </>
    )
  }
  const { sandboxID } = item.sandbox
  return (
    <>
      <span class={`state ${item.kind === 'expiring' ? 'paused' : 'error'} grow`}>
        <span>
          <a class="link mono" href={sandboxPath(sandboxID)}>
            {sandboxID}
          </a>{' '}
          {describe(item)}
        </span>
      </span>
      {item.kind === 'expiring' && (
        <Button
          isSmall
          action={() => thenReload(sandboxActions.setTimeout(sandboxID, hourSeconds))}
        >
          Set 1 h
        </Button>
      )}
      <a class="button small" href={sandboxPath(sandboxID)}>
        Open
      </a>
    </>
  )
}

function describe(item: Exclude<Attention, { readonly kind: 'build' }>): string {
  if (item.kind === 'died') return visibleName(item.reason, 160)
  return item.kind === 'memory'
    ? `uses ${Math.round(item.share * 100)} % of its memory`
    : `ends in ${formatDuration(item.secondsLeft)}`
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
