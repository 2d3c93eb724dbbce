import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { Ingress } from '@atoll/contracts/gen/atoll/node/v1/node_pb'

/** Returns a running sandbox as the node protocol reports it. */
export function toMessage(
  sandboxId: string,
  sandbox: {
    readonly address: string
    readonly ingress?: Ingress | undefined
    readonly isPausing?: boolean
    readonly generation: number
  },
) {
  const { address, ingress, isPausing, generation } = sandbox
  const state = isPausing ? SandboxState.PAUSING : SandboxState.RUNNING
  return { sandboxId, generation, address, state, ...(ingress && { ingress }) }
}
