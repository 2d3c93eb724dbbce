import type { SandboxConnection, SandboxDetail } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { thenReload } from '../../data/sandboxes.ts'
import { formatBytes, formatDuration } from '../../model/format.ts'
import { findHiddenParts, toUpdateWithName } from '../../model/network-form.ts'
import { visibleName } from '../../model/visible-text.ts'
import { ActionsHeader, Button } from '../../parts/controls.tsx'
import { ErrorNote } from '../../parts/status.tsx'
import { showToast } from '../../parts/toasts.tsx'

const pollMs = 4_000
const maxShown = 200

/** Lists connections of the sandbox, allowed and denied. A button allows a name that was denied. */
export function Connections({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const { sandboxID: id, network } = sandbox
  const path = `/sandboxes/${encodeURIComponent(id)}`
  const list = useResource(
    `connections/${id}`,
    (signal) => api<Listed>('GET', `${path}/connections`, undefined, signal),
    pollMs,
  )
  const connections = list.data?.connections ?? []
  const allow = async (name: string) => {
    await thenReload(api('PUT', `${path}/network`, toUpdateWithName(network, name)))
    showToast(`${visibleName(name, 80)} is allowed`)
  }
  const canAllow = findHiddenParts(network) === undefined
  return (
    <section class="panel scroll-x" style={{ marginTop: '16px' }}>
      <div class="panel-head">
        <h2>Connections</h2>
      </div>
      <ErrorNote resource={list} />
      {list.data && connections.length === 0 && <p class="soft panel-body">No connections yet.</p>}
      {connections.length > 0 && (
        <table class="table">
          <thead>
            <tr>
              <th>Destination</th>
              <th>Verdict</th>
              <th>Count</th>
              <th>Bytes</th>
              <th>Last</th>
              <ActionsHeader />
            </tr>
          </thead>
          <tbody>
            {connections.slice(0, maxShown).map((each) => (
              <Row key={keyOf(each)} connection={each} allow={canAllow ? allow : undefined} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

interface Listed {
  readonly connections: readonly SandboxConnection[]
}

function keyOf({ verdict, protocol, name, address, port }: SandboxConnection): string {
  return [verdict, protocol, name, address, port].join(' ')
}

function Row({
  connection,
  allow,
}: {
  readonly connection: SandboxConnection
  readonly allow: ((name: string) => Promise<void>) | undefined
}) {
  const { name, address, port, protocol, verdict, count, lastAt } = connection
  const { sentBytes, receivedBytes = 0 } = connection
  return (
    <tr>
      <td>
        <span class="mono isolated">{visibleName(name ?? address ?? '', 120)}</span>{' '}
        <span class="soft">{protocol === 'dns' ? 'DNS' : `${protocol} ${port}`}</span>
      </td>
      <td data-label="Verdict" class={verdict === 'denied' ? 'denied' : ''}>
        {verdict}
      </td>
      <td data-label="Count" class="number">
        {count}
      </td>
      <td data-label="Bytes" class="number">
        {sentBytes === undefined
          ? '–'
          : `${formatBytes(sentBytes)} out, ${formatBytes(receivedBytes)} in`}
      </td>
      <td data-label="Last" class="number">
        {formatDuration(Math.max(0, (now.value - Date.parse(lastAt)) / 1000))} ago
      </td>
      <td class="end">
        {verdict === 'denied' && name !== undefined && allow && (
          <Button isSmall aria-label={`Allow ${visibleName(name)}`} action={() => allow(name)}>
            Allow
          </Button>
        )}
      </td>
    </tr>
  )
}
