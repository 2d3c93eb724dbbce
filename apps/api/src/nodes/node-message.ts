import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type {
  GetNodeResponse,
  MeasureNodeResponse,
  Sandbox,
  SandboxSample,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { Reading } from '../domain/metrics.ts'
import type { NodeFacts, NodeUsage } from '../domain/node.ts'
import type { OnNode } from '../domain/sandboxes/sandbox-pause.ts'

export function toFacts(message: GetNodeResponse): NodeFacts {
  const { nodeId, epoch, instanceId, version, machine } = message
  return {
    id: nodeId,
    epoch,
    instanceId,
    version,
    envdVersion: message.envdVersion,
    keepsMemory: message.keepsMemory,
    memoryFormat: message.memoryFormat,
    cpuFeatures: message.cpuFeatures,
    hasObjects: message.hasObjects,
    machine: {
      cpuArchitecture: machine?.cpuArchitecture ?? '',
      cpuFamily: machine?.cpuFamily ?? '',
      cpuModel: machine?.cpuModel ?? '',
      cpuModelName: machine?.cpuModelName ?? '',
    },
  }
}

export function toUsage(message: MeasureNodeResponse): NodeUsage {
  const { sandboxCount, pausedCount, pools, hugePages, disks } = message
  const { allocatedCpuCount, cpuCount, cpuPercent } = message
  return {
    sandboxCount,
    pausedCount,
    pools: pools.map(({ templateId, ready, target }) => ({ templateId, ready, target })),
    snapshotPools: message.snapshotPools.map(({ snapshotId, ready, target }) => ({
      ...{ snapshotId, ready, target },
    })),
    allocatedCpuCount,
    allocatedMemoryBytes: Number(message.allocatedMemoryBytes),
    cpuCount,
    cpuPercent,
    memoryTotalBytes: Number(message.memoryTotalBytes),
    memoryUsedBytes: Number(message.memoryUsedBytes),
    hugePages: {
      total: Number(hugePages?.total ?? 0),
      used: Number(hugePages?.used ?? 0),
      reserved: Number(hugePages?.reserved ?? 0),
      pageSizeBytes: Number(hugePages?.pageSizeBytes ?? 0),
    },
    disks: disks.map(({ mountPoint, device, fileSystem, usedBytes, totalBytes }) => ({
      mountPoint,
      device,
      fileSystem,
      usedBytes: Number(usedBytes),
      totalBytes: Number(totalBytes),
    })),
  }
}

export function toOnNode(sandbox: Sandbox): NonNullable<OnNode> {
  const { state, keepsMemory, generation, keptGeneration, keptId, isDurable } = sandbox
  if (state === SandboxState.QUARANTINED) return { state: 'quarantined' }
  const kept = keepsMemory ? 'memory' : 'files'
  const content = {
    ...(keptGeneration > 0 && { keptGeneration, isDurable }),
    ...(keptId !== '' && { keptId }),
  }
  if (state === SandboxState.PAUSED) return { state: 'paused', kept, generation, ...content }
  const isPausing = state === SandboxState.PAUSING
  return { state: 'running', kept, generation, ...content, ...(isPausing && { isPausing }) }
}

/** Converts bigints to numbers; sizes and times stay far below 2^53. */
export function toReading(sample: SandboxSample): Reading {
  return {
    sandboxId: sample.sandboxId,
    cpuCount: sample.cpuCount,
    cpuUsedNs: Number(sample.cpuUsedNs),
    readAtNs: Number(sample.readAtNs),
    ageNs: Number(sample.ageNs),
    memoryUsedBytes: Number(sample.memoryUsedBytes),
    memoryCacheBytes: Number(sample.memoryCacheBytes),
    memoryTotalBytes: Number(sample.memoryTotalBytes),
    diskUsedBytes: Number(sample.diskUsedBytes),
    diskTotalBytes: Number(sample.diskTotalBytes),
  }
}
