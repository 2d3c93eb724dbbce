import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { NodeFacts, NodeUsage } from '../../domain/node.ts'
import { toWanted } from '../../domain/node-record.ts'
import type { NodeStatus, NodeStore } from '../../domain/node-record.ts'
import type { Fleet, Member } from './fleet.ts'

/** The machines that run sandboxes. A node is listed once it has answered for the first time. */
export interface Nodes {
  list(): Promise<NodeView[]>
  get(id: string): Promise<NodeView>
  setStatus(id: string, status: NodeStatus): Promise<void>
  /**
   * Returns the node for a new sandbox, which is `nodeId` if that is given. Throws a fault when there is none: an
   * operator may have stopped it from accepting new sandboxes.
   */
  place(nodeId?: string): Promise<string>
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

interface Health {
  readonly isWell: boolean
  readonly since: Date
}

export function createNodes(deps: {
  readonly fleet: Fleet
  readonly store: Pick<NodeStore, 'find' | 'set'>
  readonly clock: Clock
}): Nodes {
  const { fleet, store, clock } = deps
  const healths = new Map<Member, Health>()

  const noteHealth = (member: Member, isWell: boolean): Date => {
    const before = healths.get(member)
    const health = before?.isWell === isWell ? before : { isWell, since: clock.now() }
    healths.set(member, health)
    return health.since
  }
  const view = async (member: Member): Promise<NodeView[]> => {
    const usage = await measure(member)
    const since = noteHealth(member, usage !== undefined)
    const facts = member.facts()
    if (!facts) return []
    if (!usage) return [{ facts, usage: unknownUsage, status: 'unhealthy', statusSince: since }]
    const wanted = (await store.find(facts.id)) ?? { status: 'ready', since }
    const statusSince = wanted.since > since ? wanted.since : since
    return [{ facts, usage, status: wanted.status, statusSince }]
  }
  const list = async (): Promise<NodeView[]> => (await Promise.all(fleet.members.map(view))).flat()
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
      if (current.status !== wanted) await store.set(id, wanted, clock.now())
    },
    async place(nodeId) {
      if (nodeId !== undefined) fleet.member(nodeId)
      let refusal: Fault | undefined
      for (const id of nodeId === undefined ? await findNodes(fleet) : [nodeId]) {
        const wanted = await store.find(id)
        if (!wanted || wanted.status === 'ready') return id
        refusal = notAccepting(wanted.status)
      }
      throw refusal ?? noNode()
    },
  }
}

async function measure(member: Member): Promise<NodeUsage | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    await member.register(signal)
    return await member.sandboxes.measure(signal)
  } catch {
    return undefined
  }
}

/** Returns the IDs of the nodes in reach. If there are none, gives the nodes another chance to answer. */
async function findNodes(fleet: Fleet): Promise<readonly string[]> {
  const { members, ids } = fleet
  if (ids().length === 0) {
    const limit = AbortSignal.timeout(timeoutMs)
    await Promise.allSettled(members.map((member) => member.register(limit)))
  }
  return ids()
}

function noNode(): Fault {
  return new Fault('unavailable', 'node_unavailable', 'No node answers; try again later')
}

function notAccepting(status: NodeStatus): Fault {
  return new Fault(
    'unavailable',
    'sandbox_capacity_unavailable',
    `The node is ${status} and takes no new sandboxes; try again later`,
  )
}
