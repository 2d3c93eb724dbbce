import type { SandboxDetail } from '@atoll/client/replies'
import { query } from '../../../data/location.ts'
import { sandboxPath } from '../../../model/route.ts'
import { PausedNote } from '../paused-note.tsx'
import { Changes } from './changes.tsx'
import { FilesTab } from './files.tsx'

/** The files of the sandbox, or what it changed since its template. */
export function FilesPage({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const { sandboxID: id, state, parent } = sandbox
  const view = query.value.get('view')
  const isChanges = view === 'changes' || view === 'parent'
  const files = state === 'running' ? <FilesTab id={id} /> : <PausedNote id={id} />
  const current = { 'aria-current': 'page' } as const
  return (
    <>
      <nav class="row tight views" aria-label="View of the files">
        <a class="button small" href={sandboxPath(id, 'files')} {...(!isChanges && current)}>
          All files
        </a>
        <a
          class="button small"
          href={`${sandboxPath(id, 'files')}?view=changes`}
          {...(view === 'changes' && current)}
        >
          Changes
        </a>
        {parent && (
          <a
            class="button small"
            href={`${sandboxPath(id, 'files')}?view=parent`}
            title="Fails if the parent has ended"
            {...(view === 'parent' && current)}
          >
            Against the parent
          </a>
        )}
      </nav>
      {isChanges ? (
        <Changes key={view} id={id} other={view === 'parent' ? parent?.sandboxID : undefined} />
      ) : (
        files
      )}
    </>
  )
}
