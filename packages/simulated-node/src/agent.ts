import { epochHeader, nodeHeader, wrongEpoch, wrongNode } from '@atoll/contracts/node-faults'
import type { Interceptor } from '@connectrpc/connect'
import { refused } from './sandbox.ts'

export interface AgentControls {
  readonly nodeId: string
  /** Begins the next epoch, like a restart of the agent. Sandboxes keep running; watches end. */
  restartAgent(): void
  /** Takes the identity of another node, like an address that now belongs to another machine. */
  impersonate(nodeId: string, epoch: number): void
}

/** Simulates the identity of a node agent, and its refusal of calls that are meant for another one. */
export function simulateAgent(nodeId: string, events: { drop(): void }) {
  let identity = { nodeId, epoch: 1, instanceId: 'a1b2' }
  const checkAddressee: Interceptor = (next) => (request) => {
    const wanted = request.header.get(nodeHeader)
    const epoch = request.header.get(epochHeader)
    if (wanted !== null && wanted !== identity.nodeId) throw refused('another node', wrongNode)
    if (epoch !== null && epoch !== String(identity.epoch)) {
      throw refused('another epoch', wrongEpoch)
    }
    return next(request)
  }
  const controls: AgentControls = {
    nodeId,
    restartAgent() {
      const epoch = identity.epoch + 1
      identity = { ...identity, epoch, instanceId: `a1b2-${epoch}` }
      events.drop()
    },
    impersonate: (otherId, epoch) =>
      void (identity = { nodeId: otherId, epoch, instanceId: 'copy' }),
  }
  return { identity: () => identity, checkAddressee, controls }
}
