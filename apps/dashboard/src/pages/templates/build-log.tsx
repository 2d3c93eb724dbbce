import { useEffect, useRef } from 'preact/hooks'
import type { BuildInfo, BuildLogEntry } from '@atoll/client/replies'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatClock } from '../../model/format.ts'
import { visibleLine } from '../../model/visible-text.ts'
import { State } from '../../parts/controls.tsx'
import { ErrorNote } from '../../parts/status.tsx'

const pollMs = 1_500
const pageSize = 100
const maxLines = 10_000

interface SeenLog {
  readonly info: BuildInfo
  readonly entries: readonly BuildLogEntry[]
}

/** The log of a build, followed while it runs, with the step that failed. */
export function BuildLog({
  templateId,
  buildId,
}: {
  readonly templateId: string
  readonly buildId: string
}) {
  const seen = useRef<readonly BuildLogEntry[]>([])
  const log = useResource(
    `build/${templateId}/${buildId}`,
    async (signal): Promise<SeenLog> => {
      const path = `/templates/${encodeURIComponent(templateId)}/builds/${buildId}/status`
      for (;;) {
        const query = `?logsOffset=${seen.current.length}&limit=${pageSize}`
        const info = await api<BuildInfo>('GET', `${path}${query}`, undefined, signal)
        seen.current = [...seen.current, ...info.logEntries]
        if (info.logEntries.length < pageSize || seen.current.length >= maxLines) {
          return { info, entries: seen.current }
        }
      }
    },
    pollMs,
  )
  const failed = log.data?.info.reason
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Build log</h2>
        {log.data && <State state={log.data.info.status} />}
      </div>
      <ErrorNote resource={log} />
      {failed && (
        <div class="note" role="alert" style={{ margin: '10px 12px' }}>
          {failed.step && <strong>Step {failed.step} failed. </strong>}
          <span class="isolated">{visibleLine(failed.message, 1_000)}</span>
        </div>
      )}
      {log.data && <BuildLines entries={log.data.entries} />}
    </section>
  )
}

function BuildLines({ entries }: { readonly entries: readonly BuildLogEntry[] }) {
  const box = useRef<HTMLDivElement>(null)
  const count = entries.length
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight
  }, [count])
  return (
    <div
      ref={box}
      class="log"
      style={{ maxHeight: '60vh' }}
      tabIndex={0}
      role="log"
      aria-label="Build log"
    >
      {count === 0 && <div class="panel-body soft">No lines yet.</div>}
      {entries.map(({ timestamp, level, message, step }, index) => (
        <div key={index} class={`log-line ${level}`}>
          <time class="time" dateTime={timestamp}>
            {formatClock(timestamp)}
          </time>
          <span class="level clip">{step ?? level}</span>
          <span class="text isolated">{visibleLine(message)}</span>
        </div>
      ))}
    </div>
  )
}
