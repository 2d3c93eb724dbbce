import type { Snapshot } from '@atoll/client/replies'
import { api, listAll } from '../data/request.ts'
import { useResource } from '../data/resource.ts'
import { visibleName } from '../model/visible-text.ts'
import { ActionsHeader, Button, CopyButton, Snippet } from '../parts/controls.tsx'
import { confirmFirst } from '../parts/dialog.tsx'
import { Empty, ErrorNote, Skeleton } from '../parts/status.tsx'

const pollMs = 5_000

export function SnapshotsPage() {
  const snapshots = useResource(
    'snapshots',
    (signal) => listAll<Snapshot>('/snapshots?limit=100', { signal }),
    pollMs,
  )
  const remove = (id: string) =>
    confirmFirst({
      title: 'Delete this snapshot?',
      text: `${visibleName(id)}: no sandbox can start from it any more.`,
      submit: 'Delete',
      action: async () => {
        await api('DELETE', `/templates/${encodeURIComponent(id)}`)
        await snapshots.reload()
      },
    })
  return (
    <div class="page">
      <div class="page-head">
        <h1>Snapshots</h1>
      </div>
      <ErrorNote resource={snapshots} />
      {snapshots.data === undefined && !snapshots.error && <Skeleton />}
      {snapshots.data?.length === 0 && <NoSnapshots />}
      {snapshots.data && snapshots.data.length > 0 && (
        <SnapshotTable snapshots={snapshots.data} onDelete={remove} />
      )}
    </div>
  )
}

function SnapshotTable({
  snapshots,
  onDelete,
}: {
  readonly snapshots: readonly Snapshot[]
  readonly onDelete: (id: string) => void
}) {
  return (
    <div class="panel scroll-x">
      <table class="table">
        <thead>
          <tr>
            <th>Snapshot</th>
            <th>Names</th>
            <ActionsHeader />
          </tr>
        </thead>
        <tbody>
          {snapshots.map(({ snapshotID, names }) => (
            <tr key={snapshotID}>
              <td class="mono isolated">
                {visibleName(snapshotID, 80)} <CopyButton text={snapshotID} />
              </td>
              <td data-label="Names" class="isolated">
                {visibleName(names.join(', '), 120)}
              </td>
              <td class="end">
                <div class="row tight">
                  <a
                    class="button small"
                    href={`/sandboxes?new=1&from=${encodeURIComponent(snapshotID)}`}
                  >
                    Create sandbox
                  </a>
                  <Button isSmall kind="danger" action={() => onDelete(snapshotID)}>
                    Delete
                  </Button>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function NoSnapshots() {
  return (
    <Empty title="No snapshots yet">
      <p class="soft">
        A snapshot keeps the memory and files of a running sandbox; new sandboxes start from it.
        Open a <a href="/sandboxes">sandbox</a> and choose Snapshot, or from your program:
      </p>
      <Snippet
        code={
          'const { snapshotId } = await sandbox.createSnapshot()\nconst copy = await Sandbox.create(snapshotId)'
        }
      />
    </Empty>
  )
}
