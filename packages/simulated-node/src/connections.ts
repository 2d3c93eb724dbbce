import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { NodeState } from './sandbox.ts'

type Methods = Pick<ServiceImpl<typeof NodeService>, 'listConnections'>
type Listed = Awaited<ReturnType<Methods['listConnections']>>['connections']

/** Outgoing connections of simulated sandboxes. */
export interface SimulatedConnections {
  set(id: string, connections: Listed): void
}

export function simulateConnections({
  running,
  failures,
}: NodeState): SimulatedConnections & { readonly methods: Methods } {
  const byId = new Map<string, Listed>()
  return {
    set: (id, connections) => void byId.set(id, connections),
    methods: {
      listConnections({ sandboxId }) {
        failures.throwIfDown()
        return { connections: (running.has(sandboxId) && byId.get(sandboxId)) || [] }
      },
    },
  }
}
