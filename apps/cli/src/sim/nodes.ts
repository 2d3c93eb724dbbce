import { failure } from './http.ts'
import type { Reply, SimulatedRequest } from './http.ts'

/** Statuses of nodes by ID. */
export type SimulatedNodes = Map<string, string>

export function answerNodes(nodes: SimulatedNodes, request: SimulatedRequest): Reply {
  const { method, rest, body } = request
  const [id, part] = rest
  if (id === undefined)
    return { status: 200, body: [...nodes.keys()].map((one) => view(nodes, one)) }
  if (!nodes.has(id)) return failure(404, `There is no node ${id}`)
  if (part === 'moves') return { status: 200, body: movesOf(nodes, id) }
  if (method === 'GET') return { status: 200, body: view(nodes, id) }
  const moves = body['moveSandboxes'] === true ? ' and moving' : ''
  nodes.set(id, `${String(body['status'])}${moves}`)
  return { status: 204 }
}

/** Nodes are forgotten in two calls, unless they are ready. */
export function answerMembers(nodes: SimulatedNodes, { method, rest }: SimulatedRequest): Reply {
  const [, id = '', part] = rest
  const status = nodes.get(id)
  if (method === 'DELETE' && nodes.delete(id)) return { status: 204 }
  if (status === undefined || part !== 'forget')
    return failure(404, `The fleet has no member ${id}`)
  if (status === 'ready') return failure(409, `Node ${id} may still work`)
  const isDone = status === 'forgotten'
  nodes.set(id, 'forgotten')
  const ended = { endedRunning: 2, endedPaused: 1, finishedKills: 1 }
  const kept = { keptPaused: isDone ? 4 : 0, lostSnapshots: 1, lostTemplates: 0 }
  return { status: 200, body: { isDone, ...ended, ...kept } }
}

/** One sandbox moves; the two sandboxes of node `n2` cannot, and the list of problems has room for one. */
function movesOf(nodes: SimulatedNodes, id: string) {
  const isDone = nodes.get(id) === 'draining, moved'
  const moveSandboxes = nodes.get(id)?.startsWith('draining') ?? false
  if (moveSandboxes) nodes.set(id, 'draining, moved')
  const problems = id === 'n2' ? [{ sandboxID: 'ix', problem: 'No other node takes it' }] : []
  const staying = problems.length * 2
  const counts = isDone ? { running: staying, moving: 0 } : { running: staying + 1, moving: 1 }
  return { moveSandboxes, ...counts, paused: 2, notUploaded: 1, staying, problems }
}

function view(nodes: SimulatedNodes, id: string) {
  return {
    ...{ id, status: nodes.get(id), serviceInstanceID: 'i', version: '1.2.3', commit: '' },
    clusterID: '00000000-0000-0000-0000-000000000000',
    statusChangedAt: new Date().toISOString(),
    ...{ sandboxCount: 3, sandboxPausedCount: 1, sandboxStartingCount: 0 },
    ...{ createSuccesses: 4, createFails: 1 },
    pools: [{ templateID: 'base', ready: 1, target: 2 }],
    snapshotPools: [],
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
