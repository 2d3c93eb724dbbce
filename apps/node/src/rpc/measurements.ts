import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { SandboxSample } from '../app/health/usage-samples.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { PoolStatus } from '../app/pools/pool-set.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { MachineFacts, MachineUsage } from '../domain/host/machine.ts'

interface EgressDecisions {
  readonly connectionsAllowed: number
  readonly connectionsRefused: number
  readonly connectionsFailed: number
  readonly namesAllowed: number
  readonly namesRefused: number
}

export interface MeasurementParts {
  readonly sandboxes: Pick<Sandboxes, 'running' | 'paused'>
  readonly pools: Pick<WarmPools, 'list' | 'counts'>
  /** Returns undefined while there is no egress proxy. */
  readonly egressDecisions: () => Promise<EgressDecisions | undefined>
  readonly sample: (sandboxId: string | undefined) => Promise<SandboxSample[]>
  readonly facts: {
    readonly nodeId: string
    readonly epoch: number
    readonly runtime: string
    readonly envdVersion: string
    readonly templateIds: string[]
    readonly instanceId: string
    readonly version: string
    readonly machine: MachineFacts
    readonly keepsMemory: boolean
    readonly memoryFormat: string
    readonly cpuFeatures: string[]
    readonly hasObjects: boolean
  }
  readonly measure: () => Promise<MachineUsage>
  /** Number of evictions since the start of the node agent. */
  readonly evictions: () => number
}

/** Methods that describe the node and the usage of its sandboxes. */
export function measurementMethods({
  sandboxes,
  pools,
  sample,
  facts,
  measure,
  egressDecisions,
  evictions,
}: MeasurementParts): Pick<
  ServiceImpl<typeof NodeService>,
  'getNode' | 'measureNode' | 'sampleSandboxes'
> {
  return {
    getNode: () => facts,

    async measureNode() {
      const running = sandboxes.running().map(({ record }) => record)
      // A proxy that is just being replaced does not answer.
      const egress = await egressDecisions().catch(() => undefined)
      const { hits, misses } = pools.counts()
      const { memoryTotalBytes, memoryUsedBytes, hugePages, disks, ...usage } = await measure()
      return {
        ...usage,
        sandboxCount: running.length,
        pausedCount: sandboxes.paused().length,
        ...poolsIn(pools.list()),
        poolHits: BigInt(hits),
        poolMisses: BigInt(misses),
        evictions: BigInt(evictions()),
        ...(egress && { egress: toBigInts(egress) }),
        allocatedCpuCount: sum(running.map(({ cpuCount }) => cpuCount)),
        allocatedMemoryBytes: BigInt(sum(running.map(({ memoryMb }) => memoryMb))) * 1024n * 1024n,
        memoryTotalBytes: BigInt(memoryTotalBytes),
        memoryUsedBytes: BigInt(memoryUsedBytes),
        hugePages: {
          total: BigInt(hugePages.total),
          used: BigInt(hugePages.used),
          reserved: BigInt(hugePages.reserved),
          pageSizeBytes: BigInt(hugePages.pageSizeBytes),
        },
        disks: disks.map(({ usedBytes, totalBytes, ...disk }) => ({
          ...disk,
          usedBytes: BigInt(usedBytes),
          totalBytes: BigInt(totalBytes),
        })),
      }
    },

    sampleSandboxes: async ({ sandboxId }) => ({ samples: await sample(sandboxId) }),
  }
}

function toBigInts(decisions: EgressDecisions) {
  return {
    connectionsAllowed: BigInt(decisions.connectionsAllowed),
    connectionsRefused: BigInt(decisions.connectionsRefused),
    connectionsFailed: BigInt(decisions.connectionsFailed),
    namesAllowed: BigInt(decisions.namesAllowed),
    namesRefused: BigInt(decisions.namesRefused),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

/** Two lists, since an older api knows only pools of templates. */
function poolsIn(all: readonly PoolStatus[]) {
  return {
    pools: all.flatMap(({ shape, snapshotId, ready, target }) =>
      snapshotId === undefined ? [{ templateId: shape.templateId, ready, target }] : [],
    ),
    // Without those of snapshots that were used once.
    snapshotPools: all.flatMap(({ snapshotId, ready, target }) =>
      snapshotId === undefined || ready + target === 0 ? [] : [{ snapshotId, ready, target }],
    ),
  }
}
