import type { FileChange, FileChanges } from '@atoll/client/replies'
import { useState } from 'preact/hooks'
import { navigate, query } from '../../../data/location.ts'
import { api } from '../../../data/request.ts'
import { useResource } from '../../../data/resource.ts'
import { formatBytes } from '../../../model/format.ts'
import { visibleName } from '../../../model/visible-text.ts'
import { Button } from '../../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../../parts/status.tsx'
import { FileDiff } from './file-diff.tsx'

const pageSize = 500
/** Pages that the button "More" may add. */
const maxPages = 20

/**
 * Lists the changes of a sandbox since its template, or compared with another sandbox. Works for paused ones: the node
 * reads the disk itself.
 */
export function Changes({
  id,
  other,
}: {
  readonly id: string
  readonly other?: string | undefined
}) {
  const [pages, setPages] = useState(1)
  const chosen = query.value.get('change')
  const list = useResource(`changes/${id}/${other}/${pages}`, (signal) =>
    load({ id, other }, pages, signal),
  )
  const { data } = list
  return (
    <>
      <ErrorNote resource={list} />
      <div class="panel files">
        <div class="tree">
          <div class="row spread" style={{ padding: '2px 6px 8px' }}>
            <span class="soft clip">
              {other === undefined ? 'Since the template' : 'Differences'}
            </span>
            <Button isSmall action={list.reload}>
              Reload
            </Button>
          </div>
          {!data && !list.error && <Skeleton />}
          {data?.changes.length === 0 && <NoChanges other={other} />}
          {data?.changes.map((change) => (
            <ChangeRow
              key={change.path}
              change={change}
              isCurrent={change.path === chosen}
              onOpen={() => open(change.path)}
            />
          ))}
          {data?.nextToken !== undefined && pages < maxPages && (
            <Button isSmall action={() => setPages(pages + 1)}>
              More
            </Button>
          )}
          {data && !data.isComplete && (
            <p class="soft panel-body">Directories that are too large or too deep are left out.</p>
          )}
        </div>
        {chosen === null ? (
          <Empty title="Choose a change">
            <p class="soft">Text is shown line by line, before and after.</p>
          </Empty>
        ) : (
          <FileDiff key={chosen} id={id} other={other} path={chosen} />
        )}
      </div>
    </>
  )
}

function NoChanges({ other }: { readonly other: string | undefined }) {
  return (
    <p class="soft panel-body">
      {other === undefined ? 'Nothing has changed.' : 'All files are the same.'}
    </p>
  )
}

/** Shows one change beside the list, on the same page. */
function open(path: string): void {
  const search = new URLSearchParams(query.value)
  search.set('change', path)
  navigate(`${location.pathname}?${search}`)
}

async function load(
  { id, other }: { readonly id: string; readonly other: string | undefined },
  pages: number,
  signal: AbortSignal,
): Promise<FileChanges> {
  const changes: FileChange[] = []
  let page: FileChanges = { changes: [], isComplete: true }
  let isComplete = true
  for (let count = 0; count < pages; count += 1) {
    const token = page.nextToken === undefined ? {} : { nextToken: page.nextToken }
    const search = new URLSearchParams({
      limit: String(pageSize),
      ...token,
      ...(other !== undefined && { with: other }),
    })
    const path = `/sandboxes/${encodeURIComponent(id)}/changes?${search}`
    page = await api<FileChanges>('GET', path, undefined, signal)
    changes.push(...page.changes)
    isComplete &&= page.isComplete
    if (page.nextToken === undefined) break
  }
  return { ...page, changes, isComplete }
}

function ChangeRow({
  change,
  isCurrent,
  onOpen,
}: {
  readonly change: FileChange
  readonly isCurrent: boolean
  readonly onOpen: () => void
}) {
  const { path, kind, type, sizeBytes } = change
  return (
    <button
      type="button"
      class={isCurrent ? 'tree-row current' : 'tree-row'}
      title={`${kind}: ${visibleName(path)}`}
      onClick={onOpen}
    >
      <span class={`change-kind ${kind}`} aria-label={kind}>
        {kind.charAt(0).toUpperCase()}
      </span>
      <span class="mono clip isolated">
        {visibleName(path, 160)}
        {type === 'directory' && '/'}
      </span>
      {type === 'file' && <span class="faint number">{formatBytes(sizeBytes)}</span>}
    </button>
  )
}
