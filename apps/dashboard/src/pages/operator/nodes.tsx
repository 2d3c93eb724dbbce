import type { ListedNode } from '@atoll/client/replies'
import { operatorActions, useNodes } from '../../data/operator.ts'
import { formatBytes } from '../../model/format.ts'
import { visibleName } from '../../model/visible-text.ts'
import { ActionsHeader, Button } from '../../parts/controls.tsx'
import { confirmFirst } from '../../parts/dialog.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'

export function Nodes() {
  const nodes = useNodes()
  return (
    <section class="panel scroll-x" aria-label="Nodes">
      <div class="panel-head">
        <h2>Nodes</h2>
      </div>
      <ErrorNote resource={nodes} />
      {!nodes.data && !nodes.error && <Skeleton lines={2} />}
      {nodes.data && (
        <table class="table">
          <thead>
            <tr>
              <th>Node</th>
              <th>Status</th>
              <th>Sandboxes</th>
              <th>Warm pools</th>
              <th>CPU</th>
              <th>Memory</th>
              <th>Disk</th>
              <th>Creates</th>
              <ActionsHeader />
            </tr>
          </thead>
          <tbody>
            {nodes.data.map((node) => (
              <NodeRow key={node.id} node={node} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

const colorOf: Partial<Record<ListedNode['status'], string>> = {
  ready: 'running',
  draining: 'paused',
  standby: 'paused',
  unhealthy: 'error',
}

function NodeRow({ node }: { readonly node: ListedNode }) {
  const { id, status, metrics, createSuccesses, createFails } = node
  const pools = [
    ...node.pools.map(({ templateID: name, ...pool }) => ({ name, ...pool })),
    ...node.snapshotPools.map(({ snapshotID: name, ...pool }) => ({ name, ...pool })),
  ]
  const drain = () =>
    confirmFirst({
      title: 'Drain this node?',
      text: `${visibleName(id, 80)} takes no new sandboxes. Those on it keep running.`,
      submit: 'Drain',
      action: () => operatorActions.setNodeStatus(id, 'draining'),
    })
  return (
    <tr>
      <td>
        <span class="mono isolated">{visibleName(id, 60)}</span>
        <div class="faint">{visibleName(node.version, 30)}</div>
      </td>
      <td data-label="Status">
        <span class={`state ${colorOf[status] ?? ''}`}>{status}</span>
      </td>
      <td data-label="Sandboxes" class="number">
        {node.sandboxCount} running
        <div class="faint">
          {node.sandboxStartingCount} starting, {node.sandboxPausedCount} paused
        </div>
      </td>
      <td data-label="Warm pools" class="number">
        {pools.map(({ name, ready, target }) => (
          <div key={name} style={{ whiteSpace: 'nowrap' }}>
            <span class="isolated">{visibleName(name, 30)}</span> {ready} of {target}
          </div>
        ))}
        {pools.length === 0 && '–'}
      </td>
      <MachineCells metrics={metrics} />
      <td data-label="Creates" class="number" title="Since the server started">
        {createSuccesses} succeeded
        <div class={createFails > 0 ? 'bad' : 'faint'}>{createFails} failed</div>
      </td>
      <td class="end">
        {status === 'ready' ? (
          <Button isSmall action={drain}>
            Drain
          </Button>
        ) : (
          <Button isSmall action={() => operatorActions.setNodeStatus(id, 'ready')}>
            Make ready
          </Button>
        )}
      </td>
    </tr>
  )
}

function MachineCells({ metrics }: Pick<ListedNode, 'metrics'>) {
  const disk = metrics.disks[0]
  return (
    <>
      <td data-label="CPU" class="number">
        {metrics.cpuPercent} %
        <div class="faint">
          {metrics.allocatedCPU} allocated of {metrics.cpuCount}
        </div>
      </td>
      <td data-label="Memory" class="number">
        {formatBytes(metrics.memoryUsedBytes)}
        <div class="faint">
          {formatBytes(metrics.allocatedMemoryBytes)} allocated of{' '}
          {formatBytes(metrics.memoryTotalBytes)}
        </div>
      </td>
      <td data-label="Disk" class="number">
        {disk ? formatBytes(disk.usedBytes) : '–'}
        {disk && <div class="faint">of {formatBytes(disk.totalBytes)}</div>}
      </td>
    </>
  )
}
