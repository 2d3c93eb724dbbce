import type { ListedSandbox } from '@atoll/client/replies'
import { navigate, query } from '../../data/location.ts'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { parseWall, wallPath } from '../../model/wall.ts'
import type { WallView } from '../../model/wall.ts'
import { Button } from '../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'
import { Tile } from './tile.tsx'

const pollMs = 5_000
const newestPath = '/v2/sandboxes?state=running&limit=20'

/** Many sandboxes at once, live. */
export function WallPage() {
  const view = parseWall(query.value)
  return view.ids.length > 0 ? <Wall view={view} ids={view.ids} /> : <NewestWall view={view} />
}

/** Shows the newest running sandboxes, since none were chosen. */
function NewestWall({ view }: { readonly view: WallView }) {
  const newest = useResource(
    'sandboxes/newest',
    (signal) => api<ListedSandbox[]>('GET', newestPath, undefined, signal),
    pollMs,
  )
  const ids = (newest.data ?? []).map(({ sandboxID }) => sandboxID)
  if (newest.data && ids.length > 0) return <Wall view={view} ids={ids} />
  return (
    <div class="page">
      <div class="page-head">
        <h1>Wall</h1>
      </div>
      <ErrorNote resource={newest} />
      {newest.data ? (
        <Empty title="No sandbox is running">
          <p class="soft">
            The wall shows many sandboxes at once. Select some in the list, or create one.
          </p>
          <a class="button main" href="/sandboxes">
            Sandboxes
          </a>
        </Empty>
      ) : (
        !newest.error && <Skeleton lines={6} />
      )}
    </div>
  )
}

function Wall({ view, ids }: { readonly view: WallView; readonly ids: readonly string[] }) {
  const change = (part: Partial<WallView>) =>
    navigate(wallPath({ ...view, ...part }), { replace: true })
  const focus = ids.find((id) => id === view.focus)
  return (
    <div class="page full">
      <div class="page-head">
        <div class="row">
          <h1>Wall</h1>
          <span class="soft number">
            {ids.length} {ids.length === 1 ? 'sandbox' : 'sandboxes'}
          </span>
        </div>
        <div class="row tight" role="group" aria-label="Show">
          {focus !== undefined && (
            <Button action={() => change({ focus: undefined })}>Show all</Button>
          )}
          <Button aria-pressed={view.show === 'lines'} action={() => change({ show: 'lines' })}>
            Last lines
          </Button>
          <Button
            aria-pressed={view.show === 'terminals'}
            action={() => change({ show: 'terminals' })}
          >
            Terminals
          </Button>
        </div>
      </div>
      <div class={focus === undefined ? 'wall' : 'wall focused'}>
        {ids.map((id) => (
          <Tile
            key={id}
            id={id}
            show={view.show}
            isFocused={id === focus}
            onFocus={() => change({ focus: id === focus ? undefined : id })}
          />
        ))}
      </div>
    </div>
  )
}
