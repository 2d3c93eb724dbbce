import { NodeService, Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NetworkConnection as Message } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { createClient } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import type { ConnectionNode, NetworkConnection } from '../domain/network/connections.ts'
import { toInspectionFault } from './node-faults.ts'

/** Client for the outgoing connections of sandboxes on the node. */
export function connectConnections(transport: Transport): ConnectionNode {
  const client = createClient(NodeService, transport)
  return {
    async list(sandboxId, signal) {
      try {
        const { connections } = await client.listConnections({ sandboxId }, { signal })
        return connections.map(fromMessage)
      } catch (error) {
        throw toInspectionFault(error, sandboxId)
      }
    },
    async listDenied({ sinceMs, sandboxIds }, signal) {
      const request = { sinceMs: BigInt(sinceMs), sandboxIds: [...sandboxIds] }
      const { sandboxes } = await client.listDenied(request, { signal })
      return sandboxes.map(({ sandboxId, lastMs }) => ({ sandboxId, lastMs: Number(lastMs) }))
    },
  }
}

function fromMessage(message: Message): NetworkConnection {
  const { name, address, port, protocol, firstMs, lastMs, sentBytes, receivedBytes } = message
  return {
    ...(name !== undefined && { name }),
    ...(address !== undefined && { address }),
    port,
    protocol: protocol === 'udp' || protocol === 'dns' ? protocol : 'tcp',
    verdict: message.verdict === Verdict.DENIED ? 'denied' : 'allowed',
    count: Number(message.count),
    ...(firstMs !== undefined && { firstAt: toTime(firstMs) }),
    lastAt: toTime(lastMs),
    ...(sentBytes !== undefined && { sentBytes: Number(sentBytes) }),
    ...(receivedBytes !== undefined && { receivedBytes: Number(receivedBytes) }),
  }
}

function toTime(ms: bigint): string {
  return new Date(Number(ms)).toISOString()
}
