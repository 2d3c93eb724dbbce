import { envd, listProcesses } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import type { ProcessInfo } from '../../model/process.ts'
import { commandOf } from '../../model/process.ts'
import { visibleName } from '../../model/visible-text.ts'
import { ActionsHeader, Button } from '../../parts/controls.tsx'
import { confirmFirst } from '../../parts/dialog.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'

const pollMs = 5_000

export function ProcessesTab({ id }: { readonly id: string }) {
  const processes = useResource(
    `sandbox/${id}/processes`,
    async (aborted) => (await listProcesses(id, aborted)).processes ?? [],
    pollMs,
  )
  const signal = async (pid: number, name: string) => {
    await envd(id, 'SendSignal', { process: { pid }, signal: name })
    await processes.reload()
  }
  return (
    <>
      <ErrorNote resource={processes} />
      {processes.data === undefined && !processes.error && <Skeleton />}
      {processes.data?.length === 0 && (
        <Empty title="No processes">
          <p class="soft">Processes that the SDK, the CLI or a terminal started appear here.</p>
        </Empty>
      )}
      {processes.data && processes.data.length > 0 && (
        <ProcessTable processes={processes.data} onSignal={signal} />
      )}
    </>
  )
}

function ProcessTable({
  processes,
  onSignal,
}: {
  readonly processes: readonly ProcessInfo[]
  readonly onSignal: (pid: number, name: string) => Promise<void>
}) {
  return (
    <div class="panel scroll-x">
      <table class="table">
        <thead>
          <tr>
            <th>PID</th>
            <th>Command</th>
            <th>Folder</th>
            <th>Tag</th>
            <ActionsHeader />
          </tr>
        </thead>
        <tbody>
          {processes.map((process) => (
            <Row key={process.pid} process={process} onSignal={onSignal} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Row({
  process,
  onSignal,
}: {
  readonly process: ProcessInfo
  readonly onSignal: (pid: number, name: string) => Promise<void>
}) {
  return (
    <tr>
      <td data-label="PID" class="number">
        {process.pid}
      </td>
      <td data-label="Command" class="mono isolated command">
        {visibleName(commandOf(process), 200)}
      </td>
      <td data-label="Folder" class="mono isolated soft">
        {visibleName(process.config?.cwd ?? '', 80)}
      </td>
      <td data-label="Tag">
        {process.tag && <span class="tag isolated">{visibleName(process.tag, 40)}</span>}
      </td>
      <td class="end">
        <div class="row tight">
          <Button isSmall action={() => onSignal(process.pid, 'SIGNAL_SIGTERM')}>
            Terminate
          </Button>
          <Button
            isSmall
            kind="danger"
            action={() =>
              confirmFirst({
                title: `Kill process ${process.pid}?`,
                text: visibleName(commandOf(process)),
                submit: 'Kill',
                action: () => onSignal(process.pid, 'SIGNAL_SIGKILL'),
              })
            }
          >
            Kill
          </Button>
        </div>
      </td>
    </tr>
  )
}
