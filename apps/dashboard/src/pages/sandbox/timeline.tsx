import type {
  SandboxConnection,
  SandboxLogEntry,
  SandboxMetric,
  TimelineEvent,
} from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatAge } from '../../model/format.ts'
import { processMessages, toMarks } from '../../model/timeline.ts'
import type { Mark } from '../../model/timeline.ts'
import { ErrorNote } from '../../parts/status.tsx'
import { UsagePoints } from './usage-plots.tsx'

const pollMs = 5_000

/** Usage of the sandbox over time, and on the same axis what happened to it. */
export function Timeline({
  id,
  hasConnections,
}: {
  readonly id: string
  /** False for a sandbox that has ended. */
  readonly hasConnections: boolean
}) {
  const path = `/sandboxes/${encodeURIComponent(id)}`
  const metrics = useResource(
    `sandbox/${id}/metrics`,
    (signal) => api<SandboxMetric[]>('GET', `${path}/metrics`, undefined, signal),
    pollMs,
  )
  const timeline = useResource(
    `sandbox/${id}/timeline`,
    (signal) =>
      api<{ events: readonly TimelineEvent[] }>('GET', `${path}/timeline`, undefined, signal),
    pollMs,
  )
  const connections = useResource(
    `timeline-connections/${id}`,
    async (signal) =>
      hasConnections
        ? api<{ connections: SandboxConnection[] }>('GET', `${path}/connections`, undefined, signal)
        : { connections: [] },
    pollMs,
  )
  const processes = useProcessLog(id)
  const marks = toMarks(
    timeline.data?.events ?? [],
    connections.data?.connections ?? [],
    processes.data ?? [],
  )
  return (
    <>
      <ErrorNote resource={metrics} />
      <UsagePoints points={metrics.data} marks={marks} />
      <ErrorNote resource={timeline} />
      {marks.length > 0 && <Events marks={marks} />}
    </>
  )
}

const maxProcesses = 50

/** Starts and ends of processes are in the log, which outlives the sandbox. */
function useProcessLog(id: string) {
  const read = async (message: string, signal: AbortSignal) => {
    const query = new URLSearchParams({ search: message, limit: String(maxProcesses) })
    const path = `/v2/sandboxes/${encodeURIComponent(id)}/logs?${query.toString()}`
    return (await api<{ logs: SandboxLogEntry[] }>('GET', path, undefined, signal)).logs
  }
  return useResource(
    `sandbox/${id}/processes-log`,
    async (signal) => [
      ...(await read(processMessages.started, signal)),
      ...(await read(processMessages.ended, signal)),
    ],
    pollMs,
  )
}

const maxShown = 100

function Events({ marks }: { readonly marks: readonly Mark[] }) {
  return (
    <section class="panel" aria-label="Events">
      <div class="panel-head">
        <h2>Events</h2>
        <span class="soft">also marked in the plots</span>
      </div>
      <ol class="events" tabIndex={0} aria-label="Events, newest first">
        {marks
          .slice(-maxShown)
          .toReversed()
          .map(({ at, label, color }, index) => (
            <li key={`${at} ${label} ${index}`}>
              <i style={{ background: `var(${color})` }} />
              <span class="grow isolated">{label}</span>
              <span class="soft number">
                {formatAge(new Date(at * 1000).toISOString(), now.value)}
              </span>
            </li>
          ))}
      </ol>
    </section>
  )
}
