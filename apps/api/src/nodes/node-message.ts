import type {
  GetNodeResponse,
  MeasureNodeResponse,
} from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeFacts, NodeUsage } from '../domain/node.ts'

export function toFacts({ nodeId, instanceId, version, machine }: GetNodeResponse): NodeFacts {
  return {
    id: nodeId,
    instanceId,
    version,
    machine: {
      cpuArchitecture: machine?.cpuArchitecture ?? '',
      cpuFamily: machine?.cpuFamily ?? '',
      cpuModel: machine?.cpuModel ?? '',
      cpuModelName: machine?.cpuModelName ?? '',
    },
  }
}

export function toUsage(message: MeasureNodeResponse): NodeUsage {
  const { sandboxCount, allocatedCpuCount, cpuCount, cpuPercent, hugePages, disks } = message
  return {
    sandboxCount,
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
