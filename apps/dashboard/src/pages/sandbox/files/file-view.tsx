import { useState } from 'preact/hooks'
import { send } from '../../../data/request.ts'
import { useResource } from '../../../data/resource.ts'
import { decodeText } from '../../../model/file-path.ts'
import { formatBytes } from '../../../model/format.ts'
import { visibleName } from '../../../model/visible-text.ts'
import { Button } from '../../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../../parts/status.tsx'
import { showError, showToast } from '../../../parts/toasts.tsx'
import { fileUrl } from './file-url.ts'

interface OpenedFile {
  /** Undefined: not text. */
  readonly text: string | undefined
  readonly sizeBytes: number
  readonly isTruncated: boolean
}

export function FileView({ id, path }: { readonly id: string; readonly path: string }) {
  const [draft, setDraft] = useState<string | undefined>()
  const file = useResource(`file/${id}${path}`, async (signal): Promise<OpenedFile> => {
    const response = await send('GET', fileUrl(id, 'file', path), { signal })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const isTruncated = response.headers.has('x-atoll-truncated')
    const text = isTruncated ? new TextDecoder().decode(bytes) : decodeText(bytes)
    return { text, sizeBytes: bytes.length, isTruncated }
  })
  const save = async () => {
    if (draft === undefined) return
    await send('PUT', fileUrl(id, 'file', path), { body: draft })
    showToast(`${visibleName(path, 80)} is saved`)
    await file.reload()
    setDraft(undefined)
  }
  const { data } = file
  const isChanged = draft !== undefined && draft !== data?.text
  return (
    <div class="file-view">
      <div class="panel-head">
        <span class="mono isolated grow">
          {visibleName(path)} {isChanged && <span class="soft">· changed</span>}
        </span>
        <div class="row tight">
          {isChanged && (
            <Button isSmall action={() => setDraft(undefined)}>
              Discard
            </Button>
          )}
          {data?.text !== undefined && !data.isTruncated && (
            <Button isSmall kind="main" disabled={!isChanged} action={save}>
              Save
            </Button>
          )}
          <a class="button small" href={fileUrl(id, 'download', path)} download="">
            Download
          </a>
        </div>
      </div>
      <ErrorNote resource={file} />
      {!data && !file.error && <Skeleton />}
      {data && (
        <Content
          path={path}
          file={data}
          text={draft ?? data.text}
          onChange={setDraft}
          onSave={save}
        />
      )}
    </div>
  )
}

function Content({
  path,
  file,
  text,
  onChange,
  onSave,
}: {
  readonly path: string
  readonly file: OpenedFile
  readonly text: string | undefined
  readonly onChange: (text: string) => void
  readonly onSave: () => Promise<void>
}) {
  const size = formatBytes(file.sizeBytes)
  if (file.text === undefined) {
    return (
      <Empty title="This file is not text">
        <p class="soft">{size}. Download it to look at it.</p>
      </Empty>
    )
  }
  if (file.isTruncated) {
    return (
      <>
        <div class="note warn">The first {size} are shown. Download the file to see all of it.</div>
        <pre tabIndex={0}>{file.text}</pre>
      </>
    )
  }
  return (
    <textarea
      aria-label={`Content of ${visibleName(path)}`}
      spellcheck={false}
      value={text}
      onInput={(event) => onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (!(event.metaKey || event.ctrlKey) || event.key !== 's') return
        event.preventDefault()
        onSave().catch(showError)
      }}
    />
  )
}
