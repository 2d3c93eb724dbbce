import { useState } from 'preact/hooks'
import { requireFreePath } from '../../../data/files.ts'
import { envd } from '../../../data/request.ts'
import { isFolder, joinPath, parentOf } from '../../../model/file-path.ts'
import type { FileEntry } from '../../../model/file-path.ts'
import { formatBytes } from '../../../model/format.ts'
import { visibleName } from '../../../model/visible-text.ts'
import { Button, Field } from '../../../parts/controls.tsx'
import { confirmFirst, FormDialog } from '../../../parts/dialog.tsx'

const maxShown = 2_000

interface FolderListProps {
  readonly id: string
  readonly folder: string
  readonly entries: readonly FileEntry[]
  readonly current: string | null
  readonly onOpen: (folder: string, file?: string) => void
  readonly onChange: () => Promise<void>
}

export function FolderList(props: FolderListProps) {
  const { id, folder, entries, current, onOpen, onChange } = props
  const [renamed, setRenamed] = useState<FileEntry | undefined>()
  const remove = (entry: FileEntry) =>
    confirmFirst({
      title: `Delete ${isFolder(entry) ? 'this folder with all it contains' : 'this file'}?`,
      text: visibleName(entry.path),
      submit: 'Delete',
      action: async () => {
        await envd(id, 'Remove', { path: entry.path })
        if (current === entry.path) onOpen(folder)
        await onChange()
      },
    })
  return (
    <>
      {folder !== '/' && (
        <button type="button" class="tree-row mono" onClick={() => onOpen(parentOf(folder))}>
          ..
        </button>
      )}
      {entries.length === 0 && <p class="soft panel-body">The folder is empty.</p>}
      {entries.slice(0, maxShown).map((entry) => (
        <EntryRow
          key={entry.path}
          entry={entry}
          isCurrent={entry.path === current}
          onOpen={() => (isFolder(entry) ? onOpen(entry.path) : onOpen(folder, entry.path))}
          onRename={() => setRenamed(entry)}
          onDelete={() => remove(entry)}
        />
      ))}
      {entries.length > maxShown && (
        <p class="soft panel-body">and {entries.length - maxShown} more</p>
      )}
      {renamed && <Rename {...props} entry={renamed} onClose={() => setRenamed(undefined)} />}
    </>
  )
}

function EntryRow({
  entry,
  isCurrent,
  onOpen,
  onRename,
  onDelete,
}: {
  readonly entry: FileEntry
  readonly isCurrent: boolean
  readonly onOpen: () => void
  readonly onRename: () => void
  readonly onDelete: () => void
}) {
  return (
    <div class="row" style={{ gap: 0, flexWrap: 'nowrap' }}>
      <button
        type="button"
        class={isCurrent ? 'tree-row current' : 'tree-row'}
        title={visibleName(`${entry.permissions ?? ''} ${entry.owner ?? ''} ${entry.path}`)}
        onClick={onOpen}
      >
        <span aria-hidden="true">{isFolder(entry) ? '▸' : ' '}</span>
        <span class="mono clip isolated">
          {visibleName(entry.name, 120)}
          {entry.symlinkTarget && ' ↗'}
        </span>
        {!isFolder(entry) && (
          <span class="faint number">{formatBytes(Number(entry.size ?? 0))}</span>
        )}
      </button>
      <Button
        isSmall
        kind="plain"
        aria-label={`Rename ${visibleName(entry.name)}`}
        title="Rename"
        action={onRename}
      >
        ✎
      </Button>
      <Button
        isSmall
        kind="plain"
        aria-label={`Delete ${visibleName(entry.name)}`}
        title="Delete"
        action={onDelete}
      >
        ✕
      </Button>
    </div>
  )
}

function Rename({
  id,
  folder,
  entry,
  onChange,
  onClose,
}: FolderListProps & { readonly entry: FileEntry; readonly onClose: () => void }) {
  const [name, setName] = useState(entry.name)
  const rename = async () => {
    const destination = name.startsWith('/') ? name : joinPath(folder, name)
    await requireFreePath(id, destination)
    await envd(id, 'Move', { source: entry.path, destination })
    await onChange()
  }
  return (
    <FormDialog
      title={`Rename ${visibleName(entry.name, 60)}`}
      submit="Rename"
      action={rename}
      onClose={onClose}
    >
      <Field label="New name" hint="A name, or a whole path to move it">
        <input
          class="input mono"
          required
          autoFocus
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}
