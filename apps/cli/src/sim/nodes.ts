import { failure } from './http.ts'
import type { Reply, SimulatedRequest } from './http.ts'

/** Statuses of nodes by ID. */
export type SimulatedNodes = Map<string, string>

export function answerNodes(nodes: SimulatedNodes, request: SimulatedRequest): Reply {
  const { method, rest, body } = request
  const [id] = rest
  if (id === undefined)
    return { status: 200, body: [...nodes.keys()].map((one) => view(nodes, one)) }
  if (!nodes.has(id)) return failure(404, `There is no node ${id}`)
  if (method === 'GET') return { status: 200, body: view(nodes, id) }
  nodes.set(id, String(body['status']))
  return { status: 204 }
}

function view(nodes: SimulatedNodes, id: string) {
  return {
    ...{ id, status: nodes.get(id), serviceInstanceID: 'i', version: '1.2.3', commit: '' },
    clusterID: '00000000-0000-0000-0000-000000000000',
    statusChangedAt: new Date().toISOString(),
    ...{ sandboxCount: 3, sandboxPausedCount: 1, sandboxStartingCount: 0 },
    ...{ createSuccesses: 4, createFails: 1 },
    pools: [{ templateID: 'base', ready: 1, target: 2 }],
    metrics: {
      ...{ allocatedCPU: 6, cpuPercent: 42, cpuCount: 16, allocatedMemoryBytes: 3 * 1024 ** 3 },
      ...{ memoryUsedBytes: 8 * 1024 ** 3, memoryTotalBytes: 32 * 1024 ** 3 },
      ...{ hugePagesTotal: 0, hugePagesUsed: 0, hugePagesReserved: 0, hugePageSizeBytes: 0 },
      disks: [
        {
          ...{ mountPoint: '/data', device: '/dev/x', filesystemType: 'ext4' },
          ...{ usedBytes: 1024 ** 3, totalBytes: 10 * 1024 ** 3 },
        },
      ],
    },
    machineInfo: { cpuFamily: '6', cpuModel: '85', cpuModelName: 'Sim', cpuArchitecture: 'x86_64' },
  }
}
