import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { ServiceImpl } from '@connectrpc/connect'
import type { NodeState } from './sandbox.ts'

export interface SimulatedUsage {
  readonly cpuUsedNs: bigint
  readonly readAtNs: bigint
  readonly ageNs: bigint
  readonly memoryUsedBytes: bigint
  readonly memoryCacheBytes: bigint
  readonly diskUsedBytes: bigint
}

const idle: SimulatedUsage = {
  cpuUsedNs: 0n,
  readAtNs: 0n,
  ageNs: 0n,
  memoryUsedBytes: 0n,
  memoryCacheBytes: 0n,
  diskUsedBytes: 0n,
}

const nodeUsage = {
  pools: [{ templateId: 'base', ready: 1, target: 2 }],
  snapshotPools: [{ snapshotId: 's1', ready: 1, target: 1 }],
  cpuCount: 4,
  cpuPercent: 12.6,
  memoryTotalBytes: 2n ** 34n,
  memoryUsedBytes: 2n ** 33n,
  hugePages: { total: 8n, used: 3n, reserved: 1n, pageSizeBytes: 2n ** 21n },
  disks: [
    {
      mountPoint: '/data',
      device: '/dev/sim',
      fileSystem: 'ext4',
      usedBytes: 5n,
      totalBytes: 10n,
    },
  ],
}

const mebibyte = 2n ** 20n

type Methods = Pick<ServiceImpl<typeof NodeService>, 'measureNode' | 'sampleSandboxes'>

/** Simulates the resource usage of the node and its sandboxes. */
export function simulateUsage({ running, paused, failures }: NodeState) {
  const usage = new Map<string, SimulatedUsage>()
  const sampledAlone: string[] = []
  let samplings = 0
  const methods: Methods = {
    measureNode() {
      failures.throwIfDown()
      const allocated = [...running.values()]
      return {
        ...nodeUsage,
        sandboxCount: running.size,
        pausedCount: paused.size,
        allocatedCpuCount: allocated.reduce((total, { cpuCount }) => total + cpuCount, 0),
        allocatedMemoryBytes: allocated.reduce(
          (total, { memoryMb }) => total + BigInt(memoryMb) * mebibyte,
          0n,
        ),
      }
    },
    sampleSandboxes({ sandboxId: only }) {
      failures.throwIfDown()
      if (only === undefined) samplings += 1
      else sampledAlone.push(only)
      const selected = [...running].filter(([id]) => only === undefined || id === only)
      const samples = selected.map(([sandboxId, { cpuCount, memoryMb, diskSizeMb }]) => ({
        ...(usage.get(sandboxId) ?? idle),
        sandboxId,
        cpuCount,
        memoryTotalBytes: BigInt(memoryMb) * mebibyte,
        diskTotalBytes: BigInt(diskSizeMb) * mebibyte,
      }))
      return { samples }
    },
  }
  return {
    methods,
    sampledAlone,
    get samplings() {
      return samplings
    },
    set: (id: string, changed: Partial<SimulatedUsage>) =>
      void usage.set(id, { ...(usage.get(id) ?? idle), ...changed }),
    /** Returns the size on disk if the sandbox were paused now. */
    sizeOf(id: string, withMemory: boolean): bigint {
      const { diskUsedBytes, memoryUsedBytes } = usage.get(id) ?? idle
      return diskUsedBytes + (withMemory ? memoryUsedBytes : 0n)
    },
  }
}
