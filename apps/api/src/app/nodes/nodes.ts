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
  setStatus(id: string, status: NodeStatus, options?: StatusOptions): Promise<void>
}

export interface StatusOptions {
  /** Whether running sandboxes are moved to other nodes. Only with the status `draining`. */
  readonly movesSandboxes?: boolean
}

export interface NodeView {
  readonly facts: NodeFacts
  readonly usage: NodeUsage
  /** Status for operators: the wanted one, or `unhealthy`. */
  readonly status: NodeStatus
  readonly statusSince: Date
  readonly wanted: WantedStatus
  readonly movesSandboxes: boolean
}

const timeoutMs = 5_000
/** The answers of a thousand nodes at once would hold up requests, and come too late. */
const asksAtOnce = 50

const unknownFacts: Omit<NodeFacts, 'id'> = {
  epoch: 0,
  instanceId: '',
  version: '',
  envdVersion: '',
  keepsMemory: false,
  memoryFormat: '',
  cpuFeatures: [],
  hasObjects: false,
  machine: { cpuArchitecture: '', cpuFamily: '', cpuModel: '', cpuModelName: '' },
}

const unknownUsage: NodeUsage = {
  sandboxCount: 0,
  pausedCount: 0,
  pools: [],
  snapshotPools: [],
  allocatedCpuCount: 0,
  allocatedMemoryBytes: 0,
  cpuCount: 0,
  cpuPercent: 0,
  memoryTotalBytes: 0,
  memoryUsedBytes: 0,
  hugePages: { total: 0, used: 0, reserved: 0, pageSizeBytes: 0 },
  disks: [],
}

const readyStatus = { status: 'ready', movesSandboxes: false } as const

interface Health {
  readonly isWell: boolean
  readonly since: Date
}

export function createNodes(deps: {
  readonly fleet: Fleet
  readonly placing: Pick<Placing, 'noteStatus' | 'isBroken'>
  readonly store: Pick<NodeStore, 'find' | 'set' | 'forgetFailedMoves'>
  readonly clock: Clock
}): Nodes {
  const { fleet, placing, store, clock } = deps
  const noteHealth = createHealths(clock)

  const view = async (member: Member): Promise<NodeView[]> => {
    const usage = await measure(member)
    const facts = member.facts()
    const isWell = usage !== undefined && !(facts && placing.isBroken(facts.id))
    const since = noteHealth(member, isWell)
    if (!facts) return viewUnknown(member.id(), since)
    const stored = await store.find(facts.id)
    const { status: wanted, movesSandboxes } = stored ?? readyStatus
    if (!usage || !isWell) {
      const broken = { status: 'unhealthy', statusSince: since } as const
      return [{ facts, wanted, movesSandboxes, usage: usage ?? unknownUsage, ...broken }]
    }
    const statusSince = stored && stored.since > since ? stored.since : since
    return [{ facts, wanted, movesSandboxes, usage, status: wanted, statusSince }]
  }
  /** Shows a node of which only the certificate is known: operators must see that it is missing. */
  const viewUnknown = async (id: string | undefined, since: Date): Promise<NodeView[]> => {
    if (id === undefined) return []
    const { status: wanted, movesSandboxes } = (await store.find(id)) ?? readyStatus
    const facts = { ...unknownFacts, id }
    const unknown = { usage: unknownUsage, status: 'connecting', statusSince: since } as const
    return [{ facts, wanted, movesSandboxes, ...unknown }]
  }
  const limited = limitConcurrency(asksAtOnce)
  const list = async (): Promise<NodeView[]> =>
    (await Promise.all(fleet.members().map((member) => limited(() => view(member))))).flat()
  const get = async (id: string): Promise<NodeView> => {
    // The ID of a local node is unknown until its first answer.
    const possible = fleet.members().filter((member) => (member.id() ?? id) === id)
    const found = (await Promise.all(possible.map(view)))
      .flat()
      .find(({ facts }) => facts.id === id)
    if (found) return found
    throw new Fault('not_found', 'node_not_found', `There is no node ${id}: GET /nodes lists them`)
  }

  return {
    list,
    get,
    async setStatus(id, status, { movesSandboxes = false } = {}) {
      const current = await get(id)
      const wanted = toWanted(status)
      if (movesSandboxes && wanted !== 'draining') throw onlyWhenDraining(wanted)
      // An operator who asks again has removed the reason: the old problems are not shown any more.
      if (movesSandboxes) await store.forgetFailedMoves(id)
      const isSame = current.wanted === wanted && current.movesSandboxes === movesSandboxes
      if (!isSame) await store.set(id, { status: wanted, movesSandboxes }, clock.now())
      placing.noteStatus(id, wanted)
    },
  }
}

/** Returns a function that notes the health of a node and returns since when it is so. */
function createHealths(clock: Clock): (member: Member, isWell: boolean) => Date {
  const healths = new Map<Member, Health>()
  return (member, isWell) => {
    const before = healths.get(member)
    const health = before?.isWell === isWell ? before : { isWell, since: clock.now() }
    healths.set(member, health)
    return health.since
  }
}

function onlyWhenDraining(status: WantedStatus): Fault {
  const message = `moveSandboxes needs the status draining, and the request sets ${status}`
  return new Fault('invalid', 'node_status', message)
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
