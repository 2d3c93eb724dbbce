import { useState } from 'preact/hooks'
import { navigate, query } from '../../../data/location.ts'
import { requireFreePath } from '../../../data/files.ts'
import { envd, send } from '../../../data/request.ts'
import { useResource } from '../../../data/resource.ts'
import { crumbsOf, joinPath, sortEntries } from '../../../model/file-path.ts'
import type { FileEntry } from '../../../model/file-path.ts'
import { sandboxPath } from '../../../model/route.ts'
import { visibleName } from '../../../model/visible-text.ts'
import { Button, Field } from '../../../parts/controls.tsx'
import { FormDialog } from '../../../parts/dialog.tsx'
import { Empty, ErrorNote, Skeleton } from '../../../parts/status.tsx'
import { showError, showToast } from '../../../parts/toasts.tsx'
import { FileView } from './file-view.tsx'
import { fileUrl } from './file-url.ts'
import { FolderList } from './folder-list.tsx'

const homeFolder = '/home/user'
/** Rare, because envd writes each listing to the sandbox's log. */
const pollMs = 20_000

/** Folder and file are in the URL, so that a link shows the same. */
export function FilesTab({ id }: { readonly id: string }) {
  const folder = query.value.get('folder') ?? homeFolder
  const file = query.value.get('file')
  const [dialog, setDialog] = useState<'folder' | 'file' | undefined>()
  const listing = useFolder(id, folder)
  const go = (to: string, opened?: string) => {
    const search = new URLSearchParams({ folder: to, ...(opened && { file: opened }) })
    navigate(`${sandboxPath(id, 'files')}?${search}`)
  }
  const upload = async (files: Iterable<File>) => {
    for (const item of files) {
      await send('PUT', fileUrl(id, 'file', joinPath(folder, item.name)), { body: item })
      showToast(`${visibleName(item.name, 60)} is uploaded`)
    }
    await listing.reload()
  }
  return (
    <>
      <ErrorNote resource={listing} />
      <div {...useDrop(upload)}>
        <div class="tree">
          <FolderBar folder={folder} onOpen={go} onUpload={upload} onNew={setDialog} />
          {listing.data ? (
            <FolderList
              {...{ id, folder, entries: listing.data, current: file }}
              onOpen={go}
              onChange={() => listing.reload()}
            />
          ) : (
            !listing.error && <Skeleton />
          )}
        </div>
        {file === null ? (
          <Empty title="Choose a file">
            <p class="soft">
              Text can be edited here. Drop files on this panel to upload them to{' '}
              {visibleName(folder)}.
            </p>
          </Empty>
        ) : (
          <FileView key={file} id={id} path={file} />
        )}
      </div>
      {dialog && (
        <NewEntry
          {...{ id, folder, kind: dialog }}
          onClose={() => setDialog(undefined)}
          onDone={go}
          onChange={() => listing.reload()}
        />
      )}
    </>
  )
}

function useFolder(id: string, folder: string) {
  return useResource(
    `sandbox/${id}/files${folder}`,
    async () => {
      const { entries = [] } = await envd<{ entries?: FileEntry[] }>(id, 'ListDir', {
        path: folder,
        depth: 1,
      })
      return sortEntries(entries)
    },
    pollMs,
  )
}

/** Returns the attributes of a panel that takes dropped files. */
function useDrop(upload: (files: Iterable<File>) => Promise<void>) {
  const [isDropping, setDropping] = useState(false)
  return {
    class: isDropping ? 'panel files drop' : 'panel files',
    onDragOver(event: DragEvent) {
      event.preventDefault()
      setDropping(true)
    },
    onDragLeave: () => setDropping(false),
    onDrop(event: DragEvent) {
      event.preventDefault()
      setDropping(false)
      upload(event.dataTransfer?.files ?? []).catch(showError)
    },
  }
}

function FolderBar({
  folder,
  onOpen,
  onUpload,
  onNew,
}: {
  readonly folder: string
  readonly onOpen: (folder: string) => void
  readonly onUpload: (files: Iterable<File>) => Promise<void>
  readonly onNew: (kind: 'file' | 'folder') => void
}) {
  return (
    <div class="row spread" style={{ padding: '2px 6px 8px' }}>
      <nav class="crumbs" aria-label="Folder">
        {crumbsOf(folder).map(({ name, path }) => (
          <button key={path} type="button" onClick={() => onOpen(path)}>
            {name === '/' ? '/' : `${visibleName(name, 40)}/`}
          </button>
        ))}
      </nav>
      <div class="row tight">
        <label class="button small">
          Upload
          <input
            type="file"
            multiple
            hidden
            onChange={({ currentTarget }) => {
              onUpload([...(currentTarget.files ?? [])]).catch(showError)
              currentTarget.value = ''
            }}
          />
        </label>
        <Button isSmall action={() => onNew('file')}>
          New file
        </Button>
        <Button isSmall action={() => onNew('folder')}>
          New folder
        </Button>
      </div>
    </div>
  )
}

function NewEntry({
  id,
  folder,
  kind,
  onClose,
  onDone,
  onChange,
}: {
  readonly id: string
  readonly folder: string
  readonly kind: 'folder' | 'file'
  readonly onClose: () => void
  readonly onDone: (folder: string, file?: string) => void
  readonly onChange: () => Promise<void>
}) {
  const [name, setName] = useState('')
  const make = async () => {
    const path = joinPath(folder, name)
    if (kind === 'folder') await envd(id, 'MakeDir', { path })
    else {
      await requireFreePath(id, path)
      await send('PUT', fileUrl(id, 'file', path), { body: '' })
    }
    await onChange()
    onDone(folder, kind === 'file' ? path : undefined)
  }
  return (
    <FormDialog
      title={`New ${kind} in ${visibleName(folder, 80)}`}
      submit="Create"
      action={make}
      onClose={onClose}
    >
      <Field label="Name">
        <input
          class="input mono"
          required
          autoFocus
          pattern="[^\/]+"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}
