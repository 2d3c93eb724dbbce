import type { ListedSandbox } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { useEndedSandboxes } from '../../data/sandboxes.ts'
import { formatAge, formatDuration } from '../../model/format.ts'
import { sandboxPath } from '../../model/route.ts'
import { applyFilter, templateName } from '../../model/sandbox-filter.ts'
import type { SandboxFilter } from '../../model/sandbox-filter.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'

/** Sandboxes of the last 7 days that have ended, and why. */
export function EndedSandboxes({ filter }: { readonly filter: SandboxFilter }) {
  const ended = useEndedSandboxes()
  const shown = applyFilter(ended.data ?? [], filter)
  return (
    <>
      <ErrorNote resource={ended} />
      {ended.data === undefined ? (
        !ended.error && <Skeleton lines={8} />
      ) : shown.length === 0 ? (
        <Empty title="No sandbox has ended">
          <p class="soft">Ended sandboxes stay here for 7 days, with the reason of their end.</p>
        </Empty>
      ) : (
        <div class="panel" style={{ overflow: 'auto', minHeight: 0 }}>
          <table class="table">
            <thead>
              <tr>
                <th>Sandbox</th>
                <th>Why it ended</th>
                <th>Ended</th>
                <th>Ran for</th>
                <th>Template</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((sandbox) => (
                <Row key={sandbox.sandboxID} sandbox={sandbox} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function Row({ sandbox }: { readonly sandbox: ListedSandbox }) {
  const { sandboxID, startedAt, endedAt = startedAt, endReason = 'ended' } = sandbox
  const seconds = (Date.parse(endedAt) - Date.parse(startedAt)) / 1000
  return (
    <tr>
      <td>
        <a class="mono link" href={sandboxPath(sandboxID)}>
          {sandboxID}
        </a>
      </td>
      <td class="isolated">{visibleName(endReason, 200)}</td>
      <td class="soft">{formatAge(endedAt, now.value)}</td>
      <td class="number soft">{formatDuration(seconds)}</td>
      <td class="isolated">{visibleName(templateName(sandbox), 60)}</td>
    </tr>
  )
}
