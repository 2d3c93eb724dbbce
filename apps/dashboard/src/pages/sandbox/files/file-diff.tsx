import type { ChangedFile } from '@atoll/client/replies'
import { diffText, hunkHead } from '@atoll/kit/text-diff'
import type { DiffHunk } from '@atoll/kit/text-diff'
import { api } from '../../../data/request.ts'
import { useResource } from '../../../data/resource.ts'
import { formatBytes } from '../../../model/format.ts'
import { visibleName } from '../../../model/visible-text.ts'
import { Empty, ErrorNote, Skeleton } from '../../../parts/status.tsx'

const maxLines = 3_000
const maxLineLength = 2_000

export function FileDiff({
  id,
  other,
  path,
}: {
  readonly id: string
  readonly other: string | undefined
  readonly path: string
}) {
  const search = new URLSearchParams({ path, ...(other !== undefined && { with: other }) })
  const file = useResource(`change/${id}/${other}${path}`, (signal) =>
    api<ChangedFile>(
      'GET',
      `/sandboxes/${encodeURIComponent(id)}/changes/content?${search}`,
      undefined,
      signal,
    ),
  )
  return (
    <div class="file-view">
      <div class="panel-head">
        <span class="mono isolated grow">{visibleName(path)}</span>
        {file.data && <span class="soft">{describe(file.data)}</span>}
      </div>
      <ErrorNote resource={file} />
      {!file.data && !file.error && <Skeleton />}
      {file.data && <Sides file={file.data} />}
    </div>
  )
}

function describe({ before, after }: ChangedFile): string {
  const sideOf = (side: NonNullable<ChangedFile['before']>) =>
    `${side.type} ${side.mode.toString(8).padStart(4, '0')}, ${formatBytes(side.sizeBytes)}`
  if (!before) return after ? `added: ${sideOf(after)}` : ''
  return after ? `${sideOf(before)} → ${sideOf(after)}` : `deleted: ${sideOf(before)}`
}

function Sides({ file: { before, after } }: { readonly file: ChangedFile }) {
  const isBinary = [before, after].some((side) => side && side.content === undefined)
  if (isBinary) return <Empty title="This file is not text" />
  if ((after ?? before)?.type === 'directory') return <Empty title="A directory" />
  const hunks = diffText(before?.content ?? '', after?.content ?? '')
  const isTruncated = before?.isTruncated || after?.isTruncated
  return (
    <>
      {isTruncated && <div class="note warn">Only the first MiB of each side is compared.</div>}
      {hunks.length === 0 && <Empty title="The content is the same" />}
      {hunks.length > 0 && <Hunks hunks={hunks} />}
    </>
  )
}

function Hunks({ hunks }: { readonly hunks: readonly DiffHunk[] }) {
  const lines = hunks.flatMap((hunk) => [
    { kind: 'head', text: hunkHead(hunk) } as const,
    ...hunk.lines,
  ])
  const signs = { head: '', same: ' ', removed: '-', added: '+' } as const
  return (
    <pre class="diff" tabIndex={0} aria-label="Differences">
      {lines.slice(0, maxLines).map(({ kind, text }, index) => (
        <div key={index} class={kind}>
          {signs[kind]}
          {visibleName(text.replaceAll('\t', '    '), maxLineLength)}
        </div>
      ))}
      {lines.length > maxLines && <div class="head">… {lines.length - maxLines} more lines</div>}
    </pre>
  )
}
