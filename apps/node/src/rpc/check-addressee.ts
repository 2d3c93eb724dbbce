import { epochHeader, nodeHeader, wrongEpoch, wrongNode } from '@atoll/contracts/node-faults'
import { Fault } from '@atoll/kit/fault'
import type { Interceptor } from '@connectrpc/connect'

/**
 * Refuses calls that are meant for another node, or for this one before its last start. A caller that reached the wrong
 * node would take its answers for those of the right one, and end sandboxes that are alive.
 */
export function checkAddressee(own: {
  readonly nodeId: string
  readonly epoch: number
}): Interceptor {
  return (next) => (request) => {
    const nodeId = request.header.get(nodeHeader)
    const epoch = request.header.get(epochHeader)
    if (nodeId !== null && nodeId !== own.nodeId) {
      throw new Fault(
        'conflict',
        wrongNode,
        `The call is for node ${nodeId}, and this is node ${own.nodeId}: check the addresses of both`,
      )
    }
    if (epoch !== null && epoch !== String(own.epoch)) {
      throw new Fault(
        'conflict',
        wrongEpoch,
        `The call is for epoch ${epoch} of this node, which is in epoch ${own.epoch}: it has restarted`,
      )
    }
    return next(request)
  }
}
