import { signal } from '@preact/signals'
import { navigate, query } from '../../data/location.ts'
import { useSandboxes, useUsage } from '../../data/sandboxes.ts'
import { currentSession } from '../../data/session.ts'
import {
  applyFilter,
  formatFilter,
  parseFilter,
  parseState,
  templateName,
} from '../../model/sandbox-filter.ts'
import type { SandboxFilter } from '../../model/sandbox-filter.ts'
import { Button, Snippet } from '../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'
import { useKey } from '../../parts/keys.ts'
import { visibleName } from '../../model/visible-text.ts'
import { BulkBar } from './bulk-bar.tsx'
import { EndedSandboxes } from './ended-sandboxes.tsx'
import { NewSandbox } from './new-sandbox.tsx'
import { SandboxTable } from './sandbox-table.tsx'

const chosen = signal<ReadonlySet<string>>(new Set())
const inView = signal<readonly string[]>([])

export function SandboxesPage() {
  const sandboxes = useSandboxes()
  const usage = useUsage(inView.value)
  const filter = parseFilter(query.value)
  const all = sandboxes.data ?? []
  const latest = Object.fromEntries(
    Object.entries(usage).map(([id, samples]) => [id, samples.at(-1)]),
  )
  const shown = applyFilter(all, filter, latest)
  const picked = shown.filter(({ sandboxID }) => chosen.value.has(sandboxID))
  const change = (part: Partial<SandboxFilter>) =>
    navigate(`/sandboxes${formatFilter({ ...filter, ...part })}`, { replace: true })
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
      <ErrorNote resource={sandboxes} />
      {sandboxes.data && (
        <Filters filter={filter} change={change} templates={all.map(templateName)} />
      )}
      {picked.length > 0 && (
        <BulkBar picked={picked} matches={shown} onPick={(ids) => (chosen.value = new Set(ids))} />
      )}
      {filter.state === 'ended' ? (
        <EndedSandboxes filter={filter} />
      ) : sandboxes.data === undefined ? (
        !sandboxes.error && <Skeleton lines={8} />
      ) : all.length === 0 ? (
        <NoSandboxes onNew={openNew} />
      ) : shown.length === 0 ? (
        <Empty title="No sandbox matches">
          <Button action={() => navigate('/sandboxes')}>Clear the filters</Button>
        </Empty>
      ) : (
        <SandboxTable
          {...{ sandboxes: shown, usage, filter, change, chosen: chosen.value }}
          onChoose={(ids) => (chosen.value = ids)}
          onView={(ids) => {
            if (ids.join() !== inView.value.join()) inView.value = ids
          }}
        />
      )}
      {query.value.get('new') && (
        <NewSandbox onClose={() => navigate('/sandboxes', { replace: true })} />
      )}
    </div>
  )
}

function Filters({
  filter,
  change,
  templates,
}: {
  readonly filter: SandboxFilter
  readonly change: (part: Partial<SandboxFilter>) => void
  readonly templates: readonly string[]
}) {
  useKey('/', () => document.getElementById('search')?.focus())
  return (
    <div class="row">
      <input
        id="search"
        class="input auto grow"
        type="search"
        style={{ maxWidth: '420px', minWidth: '160px' }}
        aria-label="Search"
        placeholder="Search ID, template, metadata  ( / )"
        value={filter.text}
        onInput={(event) => change({ text: event.currentTarget.value })}
      />
      <select
        class="input auto"
        aria-label="State"
        value={filter.state}
        onChange={({ currentTarget: { value } }) => change({ state: parseState(value) })}
      >
        <option value="">All states</option>
        <option value="running">Running</option>
        <option value="paused">Paused</option>
        <option value="ended">Ended</option>
      </select>
      <select
        class="input auto"
        aria-label="Template"
        value={filter.template}
        onChange={(event) => change({ template: event.currentTarget.value })}
      >
        <option value="">All templates</option>
        {[...new Set(templates)].toSorted().map((name) => (
          <option key={name} value={name}>
            {visibleName(name, 60)}
          </option>
        ))}
      </select>
    </div>
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
