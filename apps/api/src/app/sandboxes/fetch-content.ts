import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { NodeFetch, SandboxNode } from '../../domain/node.ts'

/** A node answers with its progress long before. */
const callLimitMs = 60_000
const stallLimitMs = 300_000

/**
 * Has a node fetch the content of a paused sandbox. Gigabytes may take any time, so this gives up only when the node has
 * received nothing for five minutes.
 */
export async function fetchContent(
  node: Pick<SandboxNode, 'fetch'>,
  content: NodeFetch,
  clock: Clock,
): Promise<void> {
  let seen = { bytes: -1, atMs: 0 }
  for (;;) {
    const limit = AbortSignal.timeout(callLimitMs)
    const { isUnderway, receivedBytes } = await node.fetch(content, limit)
    if (!isUnderway) return
    const nowMs = clock.now().getTime()
    if (receivedBytes !== seen.bytes) seen = { bytes: receivedBytes, atMs: nowMs }
    else if (nowMs - seen.atMs > stallLimitMs) throw stalled(content.id)
  }
}

function stalled(id: string): Fault {
  return new Fault(
    'unavailable',
    'objects_unavailable',
    `Sandbox ${id} stays paused: its node has received nothing from the object store for ${stallLimitMs / 1_000} s; try again later`,
  )
}
