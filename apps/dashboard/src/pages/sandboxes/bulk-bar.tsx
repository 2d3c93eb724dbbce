import type { ListedSandbox } from '@atoll/client/replies'
import { navigate } from '../../data/location.ts'
import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import { maxTiles, wallPath } from '../../model/wall.ts'
import { Button } from '../../parts/controls.tsx'
import { confirmFirst, runForEach } from '../../parts/dialog.tsx'

/** Actions on all selected sandboxes. */
export function BulkBar({
  picked,
  matches,
  onPick,
}: {
  readonly picked: readonly ListedSandbox[]
  readonly matches: readonly ListedSandbox[]
  readonly onPick: (ids: readonly string[]) => void
}) {
  const running = picked.filter(({ state }) => state === 'running')
  return (
    <div class="bulk" role="region" aria-label="Selected sandboxes">
      <strong>{picked.length} selected</strong>
      {picked.length < matches.length && (
        <Button
          isSmall
          kind="plain"
          action={() => onPick(matches.map(({ sandboxID }) => sandboxID))}
        >
          Select all {matches.length} matches
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
      <Button isSmall kind="danger" action={() => killAll(picked, () => onPick([]))}>
        Kill
      </Button>
      <Button isSmall kind="plain" action={() => onPick([])}>
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
