import type { SandboxDetail } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { api, RequestError } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatDuration, secondsUntil } from '../../model/format.ts'
import { sandboxPath, sandboxTabs } from '../../model/route.ts'
import type { SandboxTab } from '../../model/route.ts'
import { templateName } from '../../model/sandbox-filter.ts'
import { visibleName } from '../../model/visible-text.ts'
import { CopyButton, State } from '../../parts/controls.tsx'
import { useCurrentInView } from '../../parts/current-in-view.ts'
import { lazy } from '../../parts/lazy.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { SandboxActions } from './actions.tsx'
import { Connections } from './connections.tsx'
import { EndedSandbox } from './ended.tsx'
import { FilesPage } from './files/files-page.tsx'
import { LineageTab } from './lineage.tsx'
import { LogsTab } from './logs.tsx'
import { NetworkTab } from './network.tsx'
import { OverviewTab } from './overview.tsx'
import { PausedNote } from './paused-note.tsx'
import { ProcessesTab } from './processes.tsx'

const TerminalTab = lazy(async () => (await import('./terminal/terminal.tsx')).TerminalTab)

const pollMs = 3_000
const tallTabs: ReadonlySet<SandboxTab> = new Set(['terminal', 'files', 'logs', 'lineage'])

export function SandboxPage({ id, tab }: { readonly id: string; readonly tab: SandboxTab }) {
  const sandbox = useResource(
    `sandbox/${id}`,
    (signal) =>
      api<SandboxDetail>('GET', `/sandboxes/${encodeURIComponent(id)}`, undefined, signal),
    pollMs,
  )
  const { data, error } = sandbox
  const hasEnded = error instanceof RequestError && error.status === 404
  if (hasEnded) return <EndedSandbox id={id} message={error.message} />
  if (!data) {
    return (
      <div class="page">
        <ErrorNote resource={sandbox} />
        {!error && <Skeleton lines={6} />}
      </div>
    )
  }
  const isTall = tallTabs.has(tab)
  return (
    <div class={isTall ? 'page full' : 'page'}>
      <div class="page-head">
        <div class="row">
          <h1 class="mono" style={{ fontSize: '15px' }}>
            {id}
          </h1>
          <CopyButton text={id} />
          <State state={data.state} />
          <span class="soft isolated">{visibleName(templateName(data), 60)}</span>
          {data.state === 'running' && (
            <span
              class="soft number"
              title={`Then it is ${data.lifecycle.onTimeout === 'pause' ? 'paused' : 'killed'}`}
            >
              {formatDuration(secondsUntil(data.endAt, now.value))} left
            </span>
          )}
        </div>
        <SandboxActions sandbox={data} />
      </div>
      <ErrorNote resource={sandbox} />
      <Tabs id={id} tab={tab} />
      <Tab sandbox={data} tab={tab} />
    </div>
  )
}

function Tabs({ id, tab }: { readonly id: string; readonly tab: SandboxTab }) {
  const tabs = useCurrentInView(tab)
  return (
    <nav class="tabs" aria-label="Parts of the sandbox" ref={tabs}>
      {sandboxTabs.map((name) => (
        <a
          key={name}
          href={sandboxPath(id, name)}
          {...(name === tab && { 'aria-current': 'page' as const })}
        >
          {name.charAt(0).toUpperCase() + name.slice(1)}
        </a>
      ))}
    </nav>
  )
}

function Tab({ sandbox, tab }: { readonly sandbox: SandboxDetail; readonly tab: SandboxTab }) {
  const id = sandbox.sandboxID
  if (tab === 'overview') return <OverviewTab sandbox={sandbox} />
  if (tab === 'logs') return <LogsTab id={id} />
  if (tab === 'lineage') return <LineageTab id={id} />
  if (tab === 'files') return <FilesPage sandbox={sandbox} />
  if (sandbox.state !== 'running') return <PausedNote id={id} />
  if (tab === 'terminal') return <TerminalTab id={id} />
  if (tab === 'network') {
    return (
      <>
        <NetworkTab sandbox={sandbox} key={JSON.stringify(sandbox.network)} />
        <Connections sandbox={sandbox} />
      </>
    )
  }
  return <ProcessesTab id={id} />
}
