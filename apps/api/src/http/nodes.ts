import { clusterId, getNode, getNodeMoves, listNodes, setNodeStatus } from '@atoll/contracts/nodes'
import type { NodeDetail } from '@atoll/contracts/nodes'
import { Fault } from '@atoll/kit/fault'
import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import type { Authenticate } from '../app/teams/auth.ts'
import type { CreationCounts } from '../app/sandboxes/launch-sandbox.ts'
import type { MovesOfNode } from '../app/moves/moves-of-node.ts'
import type { Nodes, NodeView } from '../app/nodes/nodes.ts'
import { addAdminRoute } from './server/route.ts'

interface NodeRoutes {
  readonly authenticate: Authenticate
  readonly nodes: Nodes
  readonly counts: (nodeId: string) => CreationCounts
  readonly movesOf: MovesOfNode
}

export function addNodeRoutes(server: FastifyInstance, routes: NodeRoutes): void {
  const { authenticate, nodes, counts, movesOf } = routes
  addAdminRoute(server, listNodes, authenticate, async ({ query }) => {
    const found = isOurs(query.clusterID) ? await nodes.list() : []
    const body = found.map((node) => ({
      ...toDetail(node, counts(node.facts.id)),
      sandboxStartingCount: counts(node.facts.id).underway,
    }))
    return { status: 200, body }
  })
  addAdminRoute(server, getNode, authenticate, async ({ params, query }) => {
    checkCluster(query.clusterID)
    return { status: 200, body: toDetail(await nodes.get(params.nodeID), counts(params.nodeID)) }
  })
  addAdminRoute(server, setNodeStatus, authenticate, async ({ params, body }) => {
    checkCluster(body.clusterID)
    const { status, moveSandboxes = false } = body
    await nodes.setStatus(params.nodeID, status, { movesSandboxes: moveSandboxes })
    return { status: 204 }
  })
  addAdminRoute(server, getNodeMoves, authenticate, async ({ params }) => {
    const { movesSandboxes, problems, ...counted } = await movesOf(params.nodeID)
    const body = {
      moveSandboxes: movesSandboxes,
      ...counted,
      problems: problems.map(({ sandboxId, problem }) => ({ sandboxID: sandboxId, problem })),
    }
    return { status: 200, body }
  })
}

function isOurs(wanted: string | undefined): boolean {
  return wanted === undefined || wanted === clusterId
}

function checkCluster(wanted: string | undefined): void {
  if (isOurs(wanted)) return
  throw new Fault(
    'not_found',
    'cluster_not_found',
    `There is no cluster ${wanted}: leave clusterID out`,
  )
}

function toDetail(node: NodeView, counts: CreationCounts): z.infer<typeof NodeDetail> {
  const { facts, usage, status, statusSince } = node
  const { hugePages, disks } = usage
  return {
    id: facts.id,
    serviceInstanceID: facts.instanceId,
    clusterID: clusterId,
    status,
    statusChangedAt: statusSince.toISOString(),
    sandboxCount: usage.sandboxCount,
    sandboxPausedCount: usage.pausedCount,
    pools: usage.pools.map(({ templateId, ...pool }) => ({ templateID: templateId, ...pool })),
    snapshotPools: usage.snapshotPools.map(({ snapshotId, ...pool }) => ({
      ...{ snapshotID: snapshotId, ...pool },
    })),
    metrics: {
      allocatedCPU: usage.allocatedCpuCount,
      cpuPercent: Math.round(usage.cpuPercent),
      cpuCount: usage.cpuCount,
      allocatedMemoryBytes: usage.allocatedMemoryBytes,
      memoryUsedBytes: usage.memoryUsedBytes,
      memoryTotalBytes: usage.memoryTotalBytes,
      hugePagesTotal: hugePages.total,
      hugePagesUsed: hugePages.used,
      hugePagesReserved: hugePages.reserved,
      hugePageSizeBytes: hugePages.pageSizeBytes,
      disks: disks.map(({ fileSystem, ...disk }) => ({ ...disk, filesystemType: fileSystem })),
    },
    createSuccesses: counts.succeeded,
    createFails: counts.failed,
    version: facts.version,
    commit: '',
    machineInfo: { ...facts.machine },
  }
}
