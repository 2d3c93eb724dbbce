import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { NodeFacts, NodeUsage } from '../../domain/node.ts'
import { toWanted } from '../../domain/node-record.ts'
import type { NodeStatus, NodeStore, WantedStatus } from '../../domain/node-record.ts'
import type { Fleet, Member } from './fleet.ts'
import type { Placing } from './placing.ts'

/** The machines that run sandboxes. A node that has not answered since this process started is `connecting`. */
export interface Nodes {
  list(): Promise<NodeView[]>
  get(id: string): Promise<NodeView>
  setStatus(id: string, status: NodeStatus): Promise<void>
}

export interface NodeView {
  readonly facts: NodeFacts
  readonly usage: NodeUsage
  /** Status for operators: the wanted one, or `unhealthy`. */
  readonly status: NodeStatus
  readonly statusSince: Date
  readonly wanted: WantedStatus
}

const timeoutMs = 5_000
/** The answers of a thousand nodes at once would hold up requests, and come too late. */
const asksAtOnce = 50

const unknownFacts: Omit<NodeFacts, 'id'> = {
  epoch: 0,
  instanceId: '',
  version: '',
  keepsMemory: false,
  hasObjects: false,
  machine: { cpuArchitecture: '', cpuFamily: '', cpuModel: '', cpuModelName: '' },
}

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
  readonly placing: Pick<Placing, 'noteStatus' | 'isBroken'>
  readonly store: Pick<NodeStore, 'find' | 'set'>
  readonly clock: Clock
}): Nodes {
  const { fleet, placing, store, clock } = deps
  const healths = new Map<Member, Health>()

  const noteHealth = (member: Member, isWell: boolean): Date => {
    const before = healths.get(member)
    const health = before?.isWell === isWell ? before : { isWell, since: clock.now() }
    healths.set(member, health)
    return health.since
  }
  const view = async (member: Member): Promise<NodeView[]> => {
    const usage = await measure(member)
    const facts = member.facts()
    const isWell = usage !== undefined && !(facts && placing.isBroken(facts.id))
    const since = noteHealth(member, isWell)
    if (!facts) return viewUnknown(member.id(), since)
    const stored = await store.find(facts.id)
    const wanted = stored?.status ?? 'ready'
    if (!usage || !isWell) {
      const broken = {
        usage: usage ?? unknownUsage,
        status: 'unhealthy',
        statusSince: since,
      } as const
      return [{ facts, wanted, ...broken }]
    }
    const statusSince = stored && stored.since > since ? stored.since : since
    return [{ facts, wanted, usage, status: wanted, statusSince }]
  }
  /** Shows a node of which only the certificate is known: operators must see that it is missing. */
  const viewUnknown = async (id: string | undefined, since: Date): Promise<NodeView[]> => {
    if (id === undefined) return []
    const wanted = (await store.find(id))?.status ?? 'ready'
    const facts = { ...unknownFacts, id }
    return [{ facts, wanted, usage: unknownUsage, status: 'connecting', statusSince: since }]
  }
  const limited = limitConcurrency(asksAtOnce)
  const list = async (): Promise<NodeView[]> =>
    (await Promise.all(fleet.members().map((member) => limited(() => view(member))))).flat()
  const get = async (id: string): Promise<NodeView> => {
    // The ID of a local node is unknown until its first answer.
    const possible = fleet.members().filter((member) => (member.id() ?? id) === id)
    const found = (await Promise.all(possible.map(view))).flat().find(({ facts }) => facts.id === id)
    if (found) return found
    throw new Fault('not_found', 'node_not_found', `There is no node ${id}: GET /nodes lists them`)
  }

  return {
    list,
    get,
    async setStatus(id, status) {
      const current = await get(id)
      const wanted = toWanted(status)
      if (current.wanted !== wanted) await store.set(id, wanted, clock.now())
      placing.noteStatus(id, wanted)
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
