import { signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { navigate, query } from '../../data/location.ts'
import { useLastLines } from '../../data/last-lines.ts'
import { useSandboxList, useUsage } from '../../data/sandboxes.ts'
import { currentSession } from '../../data/session.ts'
import {
  formatFilter,
  isFiltered,
  parseFilter,
  templateName,
  toListQuery,
} from '../../model/sandbox-filter.ts'
import type { SandboxFilter } from '../../model/sandbox-filter.ts'
import { Button, Snippet } from '../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'
import { useKey } from '../../parts/keys.ts'
import { AllMatchesBar, BulkBar } from './bulk-bar.tsx'
import { BulkDialog } from './bulk-dialog.tsx'
import { EndedSandboxes } from './ended-sandboxes.tsx'
import { Filters } from './filters.tsx'
import { NewSandbox } from './new-sandbox.tsx'
import { SandboxTable } from './sandbox-table.tsx'

const chosen = signal<ReadonlySet<string>>(new Set())
/** Filter whose matches are all selected. Another filter selects nothing. */
const allChosen = signal<string | undefined>(undefined)

const inView = signal<readonly string[]>([])
const pageRows = 100
/** Number of rows to load: those up to the last one in view, and some more. */
const wanted = signal(pageRows)

function clearChosen(): void {
  chosen.value = new Set()
  allChosen.value = undefined
}

export function SandboxesPage() {
  const filter = parseFilter(query.value)
  const change = (part: Partial<SandboxFilter>) => {
    wanted.value = pageRows
    navigate(`/sandboxes${formatFilter({ ...filter, ...part })}`, { replace: true })
  }
  const openNew = () => navigate('/sandboxes?new=1')
  useKey('n', openNew)
  return (
    <div class="page full">
      <div class="page-head">
        <h1>Sandboxes</h1>
        <Button kind="main" action={openNew}>
          New sandbox
        </Button>
      </div>
      {filter.state === 'ended' ? (
        <EndedSandboxes filter={filter} change={change} />
      ) : (
        <LiveSandboxes filter={filter} change={change} onNew={openNew} />
      )}
      {query.value.get('new') && (
        <NewSandbox onClose={() => navigate('/sandboxes', { replace: true })} />
      )}
    </div>
  )
}

function LiveSandboxes({
  filter,
  change,
  onNew,
}: {
  readonly filter: SandboxFilter
  readonly change: (part: Partial<SandboxFilter>) => void
  readonly onNew: () => void
}) {
  const listQuery = toListQuery(filter)
  const list = useSandboxList(listQuery, wanted.value)
  const usage = useUsage(inView.value)
  const lastLines = useLastLines(inView.value)
  // The last list stays until the first page of the next one is there.
  const shown = useRef(list.data)
  if (list.data) shown.current = list.data
  const { items = [], total = 0 } = shown.current ?? {}
  const isAll = allChosen.value === listQuery
  const ids = isAll ? new Set(items.map(({ sandboxID }) => sandboxID)) : chosen.value
  const picked = items.filter(({ sandboxID }) => ids.has(sandboxID))
  const pickAll = () => (allChosen.value = listQuery)
  return (
    <>
      <ErrorNote resource={list} />
      {shown.current && <Filters filter={filter} change={change} inUse={items.map(templateName)} />}
      {isAll && total > 0 ? (
        <AllMatchesBar total={total} filter={filter} onClear={clearChosen} />
      ) : (
        picked.length > 0 && (
          <BulkBar picked={picked} total={total} onPickAll={pickAll} onClear={clearChosen} />
        )
      )}
      {shown.current === undefined ? (
        !list.error && <Skeleton lines={8} />
      ) : total === 0 ? (
        <Nothing filter={filter} onNew={onNew} />
      ) : (
        <SandboxTable
          key={listQuery}
          {...{ sandboxes: items, total, usage, lastLines, filter, change, chosen: ids, isAll }}
          onChoose={(next) => {
            allChosen.value = undefined
            chosen.value = next
          }}
          onChooseAll={pickAll}
          onView={(viewed, last) => {
            if (viewed.join() !== inView.value.join()) inView.value = viewed
            wanted.value = pageRows * Math.ceil((last + pageRows / 2) / pageRows)
          }}
        />
      )}
      <BulkDialog onDone={clearChosen} />
    </>
  )
}

function Nothing({
  filter,
  onNew,
}: {
  readonly filter: SandboxFilter
  readonly onNew: () => void
}) {
  if (!isFiltered(filter)) return <NoSandboxes onNew={onNew} />
  return (
    <Empty title="No sandbox matches">
      <Button action={() => navigate('/sandboxes')}>Clear the filters</Button>
    </Empty>
  )
}

function NoSandboxes({ onNew }: { readonly onNew: () => void }) {
  const { addresses } = currentSession()
  const code = [
    `export E2B_API_URL=${addresses.apiUrl}`,
    `export E2B_SANDBOX_URL=${addresses.sandboxUrl}`,
    'export E2B_API_KEY=<your key>',
    '',
    "import { Sandbox } from 'e2b'",
    'const sandbox = await Sandbox.create()',
    "console.log((await sandbox.commands.run('uname -a')).stdout)",
  ].join('\n')
  return (
    <Empty title="No sandboxes yet">
      <p class="soft">
        A sandbox is an isolated Linux system that starts in milliseconds. Create one here, or from
        your program:
      </p>
      <Snippet code={code} />
      <Button kind="main" action={onNew}>
        New sandbox
      </Button>
    </Empty>
  )
}
