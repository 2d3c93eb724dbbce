import type { SandboxDetail } from '@atoll/client/replies'
import { api, RequestError } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import { sandboxPath } from '../../model/route.ts'
import { templateName } from '../../model/sandbox-filter.ts'
import { visibleName } from '../../model/visible-text.ts'
import type { WallView } from '../../model/wall.ts'
import { Button, State } from '../../parts/controls.tsx'
import { confirmFirst } from '../../parts/dialog.tsx'
import { lazy } from '../../parts/lazy.tsx'
import { LastLines } from './last-lines.tsx'

const TileTerminal = lazy(async () => (await import('./tile-terminal.tsx')).TileTerminal)

const pollMs = 3_000

/** One sandbox of the wall. A paused one shows its last lines: looking at it never resumes it. */
export function Tile({
  id,
  show,
  isFocused,
  onFocus,
}: {
  readonly id: string
  readonly show: WallView['show']
  readonly isFocused: boolean
  readonly onFocus: () => void
}) {
  const { data, error } = useResource(
    `sandbox/${id}`,
    (signal) =>
      api<SandboxDetail>('GET', `/sandboxes/${encodeURIComponent(id)}`, undefined, signal),
    pollMs,
  )
  const hasEnded = error instanceof RequestError && error.status === 404
  const state = hasEnded ? 'ended' : data?.state
  return (
    <section class={isFocused ? 'wall-tile front' : 'wall-tile'} aria-label={`Sandbox ${id}`}>
      <div class="tile-head">
        {state && <State state={state} />}
        <a class="mono link clip" href={sandboxPath(id)} title={id}>
          {id}
        </a>
        <span class="soft isolated clip grow">
          {data && !hasEnded ? visibleName(templateName(data), 40) : ''}
        </span>
        <TileActions id={id} state={state} isFocused={isFocused} onFocus={onFocus} />
      </div>
      {error && (
        <div class="tile-note" role="status">
          {error.message}
        </div>
      )}
      <div class="tile-body">
        {show === 'terminals' && state === 'running' ? (
          <TileTerminal id={id} isFocused={isFocused} />
        ) : (
          <LastLines id={id} />
        )}
      </div>
    </section>
  )
}

function TileActions({
  id,
  state,
  isFocused,
  onFocus,
}: {
  readonly id: string
  readonly state: string | undefined
  readonly isFocused: boolean
  readonly onFocus: () => void
}) {
  const kill = () =>
    confirmFirst({
      title: 'Kill this sandbox?',
      text: `${id}: its files and processes are lost.`,
      submit: 'Kill',
      action: () => thenReload(sandboxActions.kill(id)),
    })
  return (
    <div class="tile-actions">
      <Button isSmall kind="plain" aria-label={`Focus ${id}`} action={onFocus}>
        {isFocused ? 'Back' : 'Focus'}
      </Button>
      {state === 'running' && (
        <Button
          isSmall
          kind="plain"
          aria-label={`Pause ${id}`}
          action={() => thenReload(sandboxActions.pause(id))}
        >
          Pause
        </Button>
      )}
      {(state === 'running' || state === 'paused') && (
        <Button isSmall kind="danger" aria-label={`Kill ${id}`} action={kill}>
          Kill
        </Button>
      )}
    </div>
  )
}
