import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { Client } from '@connectrpc/connect'

/** Collects the events of a node until it is disposed. */
export function watchNode(client: Client<typeof NodeService>) {
  const closing = new AbortController()
  const changes: [sandboxId: string, change: string][] = []
  const collect = async () => {
    for await (const { event } of client.watchSandboxes({}, { signal: closing.signal })) {
      if (event.case === undefined) continue
      const sandboxId = 'sandboxId' in event.value ? event.value.sandboxId : ''
      const reason = event.case === 'ended' ? `: ${event.value.reason}` : ''
      changes.push([sandboxId, event.case + reason])
    }
  }
  const collected = collect().catch((error: unknown) => {
    if (!closing.signal.aborted) throw error
  })
  return {
    /** Returns the changes of a sandbox in order; those of no sandbox for the empty ID. */
    changesOf: (id: string) =>
      changes.filter(([sandboxId]) => sandboxId === id).map(([, change]) => change),
    async [Symbol.asyncDispose]() {
      closing.abort()
      await collected
    },
  }
}
