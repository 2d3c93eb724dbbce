import { now } from '../../data/clock.ts'
import { dashboardApi } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatAge, formatBytes, formatDuration } from '../../model/format.ts'
import { recordingPath, sandboxPath } from '../../model/route.ts'
import { ActionsHeader, Button } from '../../parts/controls.tsx'
import { confirmFirst } from '../../parts/dialog.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'

interface RecordingInfo {
  readonly id: string
  readonly sandboxId: string
  readonly startedAt: string
  readonly endedAt: string
  readonly sizeBytes: number
  readonly isOpen: boolean
}

const pollMs = 5_000

/** Recordings of terminals of the team. */
export function RecordingsPage() {
  const list = useResource(
    'recordings',
    (signal) =>
      dashboardApi<{ recordings: RecordingInfo[] }>('GET', '/recordings', undefined, signal),
    pollMs,
  )
  const remove = ({ id, sandboxId }: RecordingInfo) =>
    confirmFirst({
      title: 'Delete this recording?',
      text: `A terminal of ${sandboxId}.`,
      submit: 'Delete',
      action: async () => {
        await dashboardApi('DELETE', `/recordings/${id}`)
        await list.reload()
      },
    })
  const recordings = list.data?.recordings
  return (
    <div class="page">
      <div class="page-head">
        <h1>Recordings</h1>
      </div>
      <ErrorNote resource={list} />
      {!recordings && !list.error && <Skeleton lines={4} />}
      {recordings?.length === 0 && (
        <Empty title="No recordings">
          <p class="soft">
            Open a terminal of a sandbox and choose Record. Only output is recorded, and kept for 30
            days.
          </p>
        </Empty>
      )}
      {recordings && recordings.length > 0 && (
        <div class="panel scroll-x">
          <table class="table">
            <thead>
              <tr>
                <th>Sandbox</th>
                <th>Started</th>
                <th>Length</th>
                <th>Size</th>
                <ActionsHeader />
              </tr>
            </thead>
            <tbody>
              {recordings.map((recording) => (
                <Row key={recording.id} recording={recording} onRemove={() => remove(recording)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}

function Row({
  recording,
  onRemove,
}: {
  readonly recording: RecordingInfo
  readonly onRemove: () => void
}) {
  const { id, sandboxId, startedAt, endedAt, sizeBytes, isOpen } = recording
  const seconds = (Date.parse(endedAt) - Date.parse(startedAt)) / 1000
  return (
    <tr>
      <td>
        <a class="link mono" href={sandboxPath(sandboxId)}>
          {sandboxId}
        </a>
      </td>
      <td data-label="Started" title={startedAt}>
        {formatAge(startedAt, now.value)}
      </td>
      <td data-label="Length" class="number">
        {isOpen ? 'recording' : formatDuration(seconds)}
      </td>
      <td data-label="Size" class="number">
        {formatBytes(sizeBytes)}
      </td>
      <td class="end">
        <div class="row tight">
          <a class="button small" href={recordingPath(id)}>
            Replay
          </a>
          <a class="button small" href={`/bff/recordings/${id}/download`} download>
            Download
          </a>
          <Button isSmall kind="danger" action={onRemove}>
            Delete
          </Button>
        </div>
      </td>
    </tr>
  )
}
