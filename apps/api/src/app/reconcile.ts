import type { Clock } from '@atoll/kit/clock'
import type { SandboxNode } from '../domain/node.ts'
import type { SandboxStore } from '../domain/sandbox-store.ts'
import type { Ending } from './ending.ts'

const intervalMs = 5_000
const listTimeoutMs = 10_000
const retentionMs = 7 * 24 * 60 * 60 * 1000
const batch = 1_000

export interface ReconcilePorts {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly ending: Ending
  readonly clock: Clock
  /** Whether a request of this process is making it right now. */
  readonly isCreating: (id: string) => boolean
}

/** One pass: brings records and node together, whatever happened to either. */
export async function reconcileSandboxes(
  ports: ReconcilePorts,
  signal: AbortSignal,
): Promise<number> {
  const { store, node, ending, clock, isCreating } = ports
  // Records first: a sandbox is on the node before its record says running, and until that says otherwise.
  const records = await store.listByState(['creating', 'running', 'killing'])
  const onNode = new Set(
    await node.list(AbortSignal.any([signal, AbortSignal.timeout(listTimeoutMs)])),
  )
  for (const { id, state } of records) {
    if (state === 'running' && !onNode.has(id)) {
      await ending.ended(id, 'was lost: its node does not run it any more')
    }
    if (state === 'creating') await sweepUnfinished(ending, id, isCreating)
    if (state === 'killing') void ending.tryFinish(id)
  }
  const known = new Set(records.map(({ id }) => id))
  for (const id of onNode) {
    if (known.has(id)) continue
    // It may have been created since the records were read; its own record is older than itself.
    const record = await store.find(id)
    if (!record || record.state === 'ended') void ending.tryFinish(id)
  }
  await store.deleteEndedBefore(new Date(clock.now().getTime() - retentionMs), batch)
  return intervalMs
}

async function sweepUnfinished(
  ending: Ending,
  id: string,
  isCreating: (id: string) => boolean,
): Promise<void> {
  const isLeft = await ending.begin(
    id,
    'was never finished: the server stopped while it was being created',
    ({ state }) => state === 'creating' && !isCreating(id),
  )
  if (isLeft) void ending.tryFinish(id)
}
