import type { ListedSandbox } from '@atoll/client/replies'
import { prepareBulk } from '../../data/bulk.ts'
import { navigate } from '../../data/location.ts'
import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import { formatCount } from '../../model/format.ts'
import type { SandboxFilter } from '../../model/sandbox-filter.ts'
import { maxTiles, wallPath } from '../../model/wall.ts'
import { Button } from '../../parts/controls.tsx'
import { confirmFirst, runForEach } from '../../parts/dialog.tsx'

/** Actions on the selected sandboxes. */
export function BulkBar({
  picked,
  total,
  onPickAll,
  onClear,
}: {
  readonly picked: readonly ListedSandbox[]
  /** Number of matches of the filter. */
  readonly total: number
  readonly onPickAll: () => void
  readonly onClear: () => void
}) {
  const running = picked.filter(({ state }) => state === 'running')
  return (
    <div class="bulk" role="region" aria-label="Selected sandboxes">
      <strong>{picked.length} selected</strong>
      {picked.length < total && (
        <Button isSmall kind="plain" action={onPickAll}>
          Select all {formatCount(total)} matches
        </Button>
      )}
      <span class="grow" />
      <Button
        isSmall
        title={`Show at most ${maxTiles} of them live, side by side`}
        action={() => navigate(wallPath({ ids: picked.map(({ sandboxID }) => sandboxID) }))}
      >
        Wall
      </Button>
      <Button
        isSmall
        disabled={running.length === 0}
        action={() => each(running, (id) => sandboxActions.setTimeout(id, 3600))}
      >
        Set 1 h
      </Button>
      <Button
        isSmall
        disabled={running.length === 0}
        action={() => each(running, sandboxActions.pause)}
      >
        Pause
      </Button>
      <Button isSmall kind="danger" action={() => killAll(picked, onClear)}>
        Kill
      </Button>
      <Button isSmall kind="plain" action={onClear}>
        Clear
      </Button>
    </div>
  )
}

/** Actions on all matches of the filter, also matches that are not loaded. */
export function AllMatchesBar({
  total,
  filter,
  onClear,
}: {
  readonly total: number
  readonly filter: SandboxFilter
  readonly onClear: () => void
}) {
  return (
    <div class="bulk" role="region" aria-label="Selected sandboxes">
      <strong>All {formatCount(total)} matches selected</strong>
      <span class="grow" />
      <Button
        isSmall
        title="Let them run for at least another hour"
        action={() => prepareBulk('extend', filter)}
      >
        Extend 1 h
      </Button>
      <Button isSmall action={() => prepareBulk('pause', filter)}>
        Pause
      </Button>
      <Button isSmall kind="danger" action={() => prepareBulk('kill', filter)}>
        Kill
      </Button>
      <Button isSmall kind="plain" action={onClear}>
        Clear
      </Button>
    </div>
  )
}

function each(items: readonly ListedSandbox[], run: (id: string) => Promise<unknown>) {
  return thenReload(runForEach(items, ({ sandboxID }) => run(sandboxID)))
}

function killAll(sandboxes: readonly ListedSandbox[], onKilled: () => void) {
  return confirmFirst({
    title: `Kill ${sandboxes.length} ${sandboxes.length === 1 ? 'sandbox' : 'sandboxes'}?`,
    text: 'Their files and processes are lost.',
    submit: 'Kill',
    action: async () => {
      await each(sandboxes, sandboxActions.kill)
      onKilled()
    },
  })
}
