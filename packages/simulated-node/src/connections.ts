import { Verdict } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { NodeState } from './sandbox.ts'

type Methods = Pick<ServiceImpl<typeof NodeService>, 'listConnections' | 'listDenied'>
type Listed = Awaited<ReturnType<Methods['listConnections']>>['connections']

/** Outgoing connections of simulated sandboxes. */
export interface SimulatedConnections {
  set(id: string, connections: Listed): void
  /** Sandboxes that each request for denials named. */
  readonly deniedAsked: readonly (readonly string[])[]
}

export function simulateConnections({
  running,
  failures,
}: NodeState): SimulatedConnections & { readonly methods: Methods } {
  const byId = new Map<string, Listed>()
  const asked: (readonly string[])[] = []
  return {
    deniedAsked: asked,
    set: (id, connections) => void byId.set(id, connections),
    methods: {
      listConnections({ sandboxId }) {
        failures.throwIfDown()
        return { connections: (running.has(sandboxId) && byId.get(sandboxId)) || [] }
      },
      listDenied({ sinceMs, sandboxIds }) {
        failures.throwIfDown()
        asked.push(sandboxIds)
        const isAsked = (id: string) => sandboxIds.length === 0 || sandboxIds.includes(id)
        const sandboxes = [...byId].flatMap(([sandboxId, connections = []]) => {
          const times = connections
            .filter(({ verdict }) => verdict === Verdict.DENIED)
            .map(({ lastMs = 0n }) => Number(lastMs))
          const last = Math.max(0, ...times)
          if (
            !running.has(sandboxId) ||
            !isAsked(sandboxId) ||
            last === 0 ||
            last < Number(sinceMs)
          )
            return []
          return [{ sandboxId, lastMs: BigInt(last) }]
        })
        return { sandboxes: sandboxes.toSorted((a, b) => Number(b.lastMs - a.lastMs)) }
      },
    },
  }
}
