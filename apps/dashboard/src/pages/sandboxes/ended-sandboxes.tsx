import { useState } from 'preact/hooks'
import type { ListedSandbox } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { useSandboxList } from '../../data/sandboxes.ts'
import { formatAge, formatCount, formatDuration } from '../../model/format.ts'
import { sandboxPath } from '../../model/route.ts'
import { templateName, toListQuery } from '../../model/sandbox-filter.ts'
import type { SandboxFilter } from '../../model/sandbox-filter.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Button } from '../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'
import { Filters } from './filters.tsx'

const pageRows = 100

/** Sandboxes of the last 7 days that have ended, and why. */
export function EndedSandboxes({
  filter,
  change,
}: {
  readonly filter: SandboxFilter
  readonly change: (part: Partial<SandboxFilter>) => void
}) {
  const [rows, setRows] = useState(pageRows)
  const ended = useSandboxList(toListQuery(filter), rows)
  const { items = [], total = 0 } = ended.data ?? {}
  return (
    <>
      <ErrorNote resource={ended} />
      <Filters filter={filter} change={change} inUse={items.map(templateName)} />
      {ended.data === undefined ? (
        !ended.error && <Skeleton lines={8} />
      ) : total === 0 ? (
        <Empty title="No sandbox has ended">
          <p class="soft">Ended sandboxes stay here for 7 days, with the reason of their end.</p>
        </Empty>
      ) : (
        <EndedTable items={items} />
      )}
      {items.length < total && (
        <Button action={() => setRows(items.length + pageRows)}>
          Show more of {formatCount(total)}
        </Button>
      )}
    </>
  )
}

function EndedTable({ items }: { readonly items: readonly ListedSandbox[] }) {
  return (
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
          {items.map((sandbox) => (
            <Row key={sandbox.sandboxID} sandbox={sandbox} />
          ))}
        </tbody>
      </table>
    </div>
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
      <td data-label="Why it ended" class="isolated">
        {visibleName(endReason, 200)}
      </td>
      <td data-label="Ended" class="soft">
        {formatAge(endedAt, now.value)}
      </td>
      <td data-label="Ran for" class="number soft">
        {formatDuration(seconds)}
      </td>
      <td data-label="Template" class="isolated">
        {visibleName(templateName(sandbox), 60)}
      </td>
    </tr>
  )
}
