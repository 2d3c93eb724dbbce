import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { SandboxSample } from '../app/health/usage-samples.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { MachineFacts, MachineUsage } from '../domain/host/machine.ts'

export interface MeasurementParts {
  readonly sandboxes: Pick<Sandboxes, 'running' | 'paused'>
  readonly pools: Pick<WarmPools, 'list'>
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
  }
  readonly measure: () => Promise<MachineUsage>
}

/** Methods that describe the node and the usage of its sandboxes. */
export function measurementMethods({
  sandboxes,
  pools,
  sample,
  facts,
  measure,
}: MeasurementParts): Pick<
  ServiceImpl<typeof NodeService>,
  'getNode' | 'measureNode' | 'sampleSandboxes'
> {
  return {
    getNode: () => facts,

    async measureNode() {
      const running = sandboxes.running().map(({ record }) => record)
      const { memoryTotalBytes, memoryUsedBytes, hugePages, disks, ...usage } = await measure()
      return {
        ...usage,
        sandboxCount: running.length,
        pausedCount: sandboxes.paused().length,
        pools: pools.list().map(({ shape, ready, target }) => ({
          templateId: shape.templateId,
          ready,
          target,
        })),
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
