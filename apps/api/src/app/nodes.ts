import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { NodeFacts, NodeUsage, SandboxNode } from '../domain/node.ts'
import { toWanted } from '../domain/node-status.ts'
import type { NodeStatus, NodeStatusStore } from '../domain/node-status.ts'

/** The machines that run sandboxes. Currently a single node, listed once it has answered for the first time. */
export interface Nodes {
  list(): Promise<NodeView[]>
  get(id: string): Promise<NodeView>
  setStatus(id: string, status: NodeStatus): Promise<void>
  /** Throws a fault when an operator has stopped the node from accepting new sandboxes. */
  checkAccepts(): Promise<void>
}

export interface NodeView {
  readonly facts: NodeFacts
  readonly usage: NodeUsage
  readonly status: NodeStatus
  readonly statusSince: Date
}

const timeoutMs = 5_000

const unknownUsage: NodeUsage = {
  sandboxCount: 0,
  pausedCount: 0,
  pools: [],
  allocatedCpuCount: 0,
  allocatedMemoryBytes: 0,
  cpuCount: 0,
  cpuPercent: 0,
  memoryTotalBytes: 0,
  memoryUsedBytes: 0,
  hugePages: { total: 0, used: 0, reserved: 0, pageSizeBytes: 0 },
  disks: [],
}

export function createNodes(deps: {
  readonly node: SandboxNode
  readonly statuses: NodeStatusStore
  readonly clock: Clock
}): Nodes {
  const { node, statuses, clock } = deps
  let known: NodeFacts | undefined
  let health: { readonly isWell: boolean; readonly since: Date } | undefined

  const noteHealth = (isWell: boolean): Date => {
    if (health?.isWell !== isWell) health = { isWell, since: clock.now() }
    return health.since
  }
  const readUsage = async (): Promise<NodeUsage | undefined> => {
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      known = await node.describe(signal)
      return await node.measure(signal)
    } catch {
      return undefined
    }
  }
  const list = async (): Promise<NodeView[]> => {
    const usage = await readUsage()
    const since = noteHealth(usage !== undefined)
    if (!known) return []
    const facts = known
    if (!usage) return [{ facts, usage: unknownUsage, status: 'unhealthy', statusSince: since }]
    const wanted = (await statuses.find(facts.id)) ?? { status: 'ready', since }
    const statusSince = wanted.since > since ? wanted.since : since
    return [{ facts, usage, status: wanted.status, statusSince }]
  }
  const get = async (id: string): Promise<NodeView> => {
    const found = (await list()).find(({ facts }) => facts.id === id)
    if (found) return found
    throw new Fault('not_found', 'node_not_found', `There is no node ${id}: GET /nodes lists them`)
  }

  return {
    list,
    get,
    async setStatus(id, status) {
      const current = await get(id)
      const wanted = toWanted(status)
      if (current.status !== wanted) await statuses.set(id, wanted, clock.now())
    },
    async checkAccepts() {
      known ??= await node.describe(AbortSignal.timeout(timeoutMs)).catch(() => undefined)
      const wanted = known && (await statuses.find(known.id))
      if (!wanted || wanted.status === 'ready') return
      throw new Fault(
        'unavailable',
        'sandbox_capacity_unavailable',
        `The node is ${wanted.status} and takes no new sandboxes; try again later`,
      )
    },
  }
}
