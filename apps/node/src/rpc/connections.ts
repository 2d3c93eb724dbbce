import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { ListConnections, ListDenied } from '../app/connections/connections.ts'
import type { NetworkConnection } from '../domain/network/connections.ts'
import { checkId } from '../domain/sandboxes/cell.ts'

export function connectionMethods(
  list: ListConnections,
  listDenied: ListDenied,
): Pick<ServiceImpl<typeof NodeService>, 'listConnections' | 'listDenied'> {
  return {
    async listConnections({ sandboxId }) {
      checkId(sandboxId)
      return { connections: (await list(sandboxId)).map(toMessage) }
    },
    async listDenied({ sinceMs, sandboxIds }) {
      const denied = await listDenied(Number(sinceMs), sandboxIds)
      return {
        sandboxes: denied.map(({ sandboxId, lastMs }) => ({
          sandboxId,
          lastMs: BigInt(Math.floor(lastMs)),
        })),
      }
    },
  }
}

function toMessage(connection: NetworkConnection) {
  const { name, address, port, protocol, verdict, count } = connection
  const { firstMs, lastMs, sentBytes, receivedBytes } = connection
  return {
    ...(name !== undefined && { name }),
    ...(address !== undefined && { address }),
    port,
    protocol,
    verdict: verdict === 'allowed' ? Verdict.ALLOWED : Verdict.DENIED,
    count: BigInt(count),
    ...(firstMs !== undefined && { firstMs: BigInt(Math.floor(firstMs)) }),
    lastMs: BigInt(Math.floor(lastMs)),
    ...(sentBytes !== undefined && { sentBytes: BigInt(sentBytes) }),
    ...(receivedBytes !== undefined && { receivedBytes: BigInt(receivedBytes) }),
  }
}
