import { z } from 'zod'
import { defineOperation } from './operation.ts'
import { Text, Timestamp } from './schemas/text.ts'

/** Operator API for the machines that run sandboxes. */

/** There is only one cluster, with a fixed ID. */
export const clusterId = '00000000-0000-0000-0000-000000000000'

const NodeStatus = z
  .enum(['ready', 'draining', 'connecting', 'unhealthy', 'standby'])
  .meta({ id: 'NodeStatus' })

const Disk = z
  .object({
    mountPoint: z.string(),
    device: z.string(),
    filesystemType: z.string(),
    usedBytes: z.int().min(0),
    totalBytes: z.int().min(0),
  })
  .meta({ id: 'DiskMetrics' })

const Metrics = z
  .object({
    allocatedCPU: z
      .int32()
      .min(0)
      .describe('CPU cores allocated to all running sandboxes together'),
    cpuPercent: z.int32().min(0).describe('Percent of all cores since the last reading'),
    cpuCount: z.int32().min(0),
    allocatedMemoryBytes: z.int().min(0),
    memoryUsedBytes: z.int().min(0),
    memoryTotalBytes: z.int().min(0),
    hugePagesTotal: z.int().min(0),
    hugePagesUsed: z.int().min(0),
    hugePagesReserved: z.int().min(0),
    hugePageSizeBytes: z.int().min(0),
    disks: z.array(Disk),
  })
  .meta({ id: 'NodeMetrics' })

const Pool = z
  .object({
    templateID: z.string(),
    ready: z.int().min(0),
    target: z.int().min(0).describe('Current target size'),
  })
  .meta({ id: 'NodePool' })

const SnapshotPool = z
  .object({
    snapshotID: z.string(),
    ready: z.int().min(0),
    target: z.int().min(0).describe('Current target size'),
  })
  .meta({ id: 'NodeSnapshotPool' })

const MachineInfo = z
  .object({
    cpuFamily: z.string(),
    cpuModel: z.string(),
    cpuModelName: z.string(),
    cpuArchitecture: z.string(),
  })
  .meta({ id: 'MachineInfo' })

export const NodeDetail = z
  .object({
    id: z.string(),
    serviceInstanceID: z.string().describe('Changes with each start of the node agent'),
    clusterID: z.uuid(),
    status: NodeStatus,
    statusChangedAt: Timestamp,
    sandboxCount: z.int().min(0),
    sandboxPausedCount: z.int().min(0),
    pools: z
      .array(Pool)
      .describe('Warm pools by template: started sandboxes that are not assigned yet'),
    snapshotPools: z
      .array(SnapshotPool)
      .describe(
        'Warm pools of snapshots that were used often lately: copies that are not assigned yet',
      ),
    metrics: Metrics,
    createSuccesses: z.int().min(0).describe('Since this API process started'),
    createFails: z.int().min(0).describe('Since this API process started'),
    version: z.string(),
    commit: z.string().describe('Always empty; releases are identified by their version'),
    machineInfo: MachineInfo,
  })
  .meta({ id: 'NodeDetail' })

export const Node = NodeDetail.extend({
  sandboxStartingCount: z.int().min(0).describe('Sandboxes that are being created'),
}).meta({ id: 'Node' })

const ClusterQuery = z.object({
  clusterID: z
    .uuid({ error: 'must be a UUID: the `clusterID` that GET /nodes shows' })
    .optional()
    .describe('Only nodes of this cluster'),
})

const NodeParams = z.object({ nodeID: Text.max(256) })

export const listNodes = defineOperation({
  id: 'node.list',
  summary: 'List the nodes',
  method: 'GET',
  path: '/nodes',
  auth: 'admin',
  query: ClusterQuery,
  replies: { 200: { description: 'All nodes', body: z.array(Node) } },
  errors: [400, 500],
})

export const getNode = defineOperation({
  id: 'node.get',
  summary: 'Get a node',
  method: 'GET',
  path: '/nodes/{nodeID}',
  auth: 'admin',
  params: NodeParams,
  query: ClusterQuery,
  replies: { 200: { description: 'The node', body: NodeDetail } },
  errors: [400, 404, 500],
})

export const setNodeStatus = defineOperation({
  id: 'node.setStatus',
  summary: 'Set the status of a node: with `draining` and `standby` it takes no new sandboxes',
  method: 'POST',
  path: '/nodes/{nodeID}',
  auth: 'admin',
  params: NodeParams,
  body: z
    .object({
      status: NodeStatus,
      clusterID: ClusterQuery.shape.clusterID,
      moveSandboxes: z
        .boolean()
        .optional()
        .describe(
          'With `draining`: also move running sandboxes to other nodes, through the object store',
        ),
    })
    .meta({ id: 'NodeStatusChange' }),
  replies: { 204: { description: 'The status is set' } },
  errors: [400, 404, 409, 500],
})

export const NodeMoves = z
  .object({
    moveSandboxes: z.boolean().describe('Whether running sandboxes are moved to other nodes'),
    running: z.int().min(0),
    moving: z.int().min(0).describe('Paused here, and not yet resumed on another node'),
    paused: z.int().min(0),
    notUploaded: z.int().min(0).describe('Paused sandboxes whose content only this node has'),
    staying: z.int().min(0).describe('Running sandboxes that could not be moved'),
    problems: z
      .array(z.object({ sandboxID: z.string(), problem: z.string() }))
      .describe('Why the first 1,000 of them could not be moved'),
  })
  .meta({ id: 'NodeMoves' })

export const getNodeMoves = defineOperation({
  id: 'node.moves',
  summary: 'Show what is left on a node that is drained, and which sandboxes cannot be moved',
  method: 'GET',
  path: '/nodes/{nodeID}/moves',
  auth: 'admin',
  params: NodeParams,
  replies: { 200: { description: 'Counts of sandboxes, and problems', body: NodeMoves } },
  errors: [400, 404, 500],
})
