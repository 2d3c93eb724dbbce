import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { NodeShape } from '../../domain/node.ts'
import type { NodeStatus, NodeStore, WantedStatus } from '../../domain/node-record.ts'
import { createCircuitBreaker } from '../../domain/nodes/circuit-breaker.ts'
import type { CircuitBreaker } from '../../domain/nodes/circuit-breaker.ts'
import { rank, takeSample } from '../../domain/nodes/placement.ts'
import type { SizeEstimate } from '../snapshots/estimate-size.ts'
import type { Fleet } from './fleet.ts'
import { loadOf } from './loads.ts'
import type { Loads } from './loads.ts'
import { repeatIfRestarted } from './repeat-if-restarted.ts'

/** Places new sandboxes on nodes. */
export interface Placing {
  /**
   * Runs `start` with the best node, and with the next best ones while they have no capacity or do not answer. A node
   * that has restarted gets a second chance. Rethrows the last fault. Throws a fault when no node accepts new sandboxes.
   */
  place<T>(request: PlacementRequest, start: (nodeId: string) => Promise<T>): Promise<T>
  /** Throws a fault when no node accepts new sandboxes. */
  check(): Promise<void>
  /** Takes over a status that an operator has set, or that another process has stored. */
  noteStatus(nodeId: string, status: WantedStatus): void
  /** Sets the check for nodes that have sent no heartbeat for some time: they get no new sandboxes. */
  useSuspicion(isSuspect: (nodeId: string) => boolean): void
  /** `gone`: the node does not answer, or was silent for some time. `draining`: an operator wants it empty. */
  conditionOf(nodeId: string): 'well' | 'draining' | 'gone'
  /** Whether the node has room for a sandbox that exists elsewhere, as far as its last measurement shows. */
  hasRoom(nodeId: string, size: SizeEstimate): boolean
  /** Whether creates fail on the node, so that it gets none for now. */
  isBroken(nodeId: string): boolean
}

export interface PlacementRequest {
  readonly shape: NodeShape
  /** Node that has what the sandbox is created from. */
  readonly nodeId?: string | undefined
  /** Whether nodes with an object store can fetch what the sandbox is created from. */
  readonly isDurable?: boolean
  /** Node that must not be chosen. */
  readonly exceptId?: string
  /** Nodes that do not pass are chosen only if no other one works. */
  readonly suits?: (nodeId: string) => boolean
}

interface PlacingPorts {
  readonly fleet: Fleet
  readonly loads: Loads
  readonly store: Pick<NodeStore, 'find'>
  readonly clock: Clock
}

const registerLimitMs = 5_000

export function createPlacing(ports: PlacingPorts): Placing {
  const { fleet } = ports
  const breakers = createBreakers(ports.clock)
  const statuses = new Map<string, WantedStatus>()
  let isSuspect: (nodeId: string) => boolean = () => false

  /** Leaves out nodes that are broken or drained, unless all are: then one of them explains why nothing works. */
  const choose = async (request: PlacementRequest): Promise<string[]> => {
    const { shape, nodeId, isDurable = false, exceptId, suits = () => true } = request
    if (nodeId !== undefined && !isDurable) return [nodeId]
    const canStart = (id: string) =>
      id !== exceptId && (!isDurable || id === nodeId || hasObjects(fleet, id))
    const isReady = (id: string) => canStart(id) && (statuses.get(id) ?? 'ready') === 'ready'
    const isWell = (id: string) => isReady(id) && !breakers.isOpen(id) && !isSuspect(id)
    const wishes = [(id: string) => isWell(id) && suits(id), isWell, isReady, canStart]
    const sample = sampleWith(inReach(fleet, nodeId), await findNodes(fleet), wishes)
    if (sample.length < 2) return [...sample]
    const candidates = sample.map((id) => ({
      ...ports.loads.describe(id, shape),
      hasLayers: nodeId === undefined || id === nodeId,
    }))
    return rank(candidates, loadOf(shape)).map(({ id }) => id)
  }
  return {
    async place(request, start) {
      let reason: unknown = noNode()
      for (const nodeId of await choose(request)) {
        try {
          const member = fleet.member(nodeId)
          await checkAccepts(ports, nodeId)
          const isPinned = request.nodeId !== undefined
          const work = { shape: request.shape, nodeId, isPinned, start }
          const run = () => attempt(ports.loads, breakers, work)
          return await repeatIfRestarted(member, run)
        } catch (error) {
          if (!isTriedElsewhere(error)) throw error
          reason = error
        }
      }
      throw reason
    },
    async check() {
      let reason = noNode()
      for (const nodeId of await findNodes(fleet)) {
        const refusal = await checkAccepts(ports, nodeId).catch((error: unknown) => error)
        if (refusal === undefined) return
        reason = Fault.from(refusal)
      }
      throw reason
    },
    noteStatus: (nodeId, status) => void statuses.set(nodeId, status),
    useSuspicion: (given) => void (isSuspect = given),
    conditionOf(nodeId) {
      if (!fleet.reaches(nodeId) || isSuspect(nodeId)) return 'gone'
      return (statuses.get(nodeId) ?? 'ready') === 'ready' ? 'well' : 'draining'
    },
    hasRoom: (nodeId, size) => ports.loads.hasRoom(nodeId, roomOf(size)),
    isBroken: (nodeId) => breakers.isOpen(nodeId) || isSuspect(nodeId),
  }
}

function inReach(fleet: Fleet, nodeId: string | undefined): string | undefined {
  return nodeId !== undefined && fleet.reaches(nodeId) ? nodeId : undefined
}

/** Saved memory takes space on the disk too. */
function roomOf({ memoryBytes, diskBytes }: SizeEstimate): SizeEstimate {
  return { memoryBytes, diskBytes: diskBytes + memoryBytes }
}

/**
 * Samples the nodes that pass the first check that any node passes. A fetch takes longer than a start, so the node that has
 * the files is always considered.
 */
function sampleWith(
  home: string | undefined,
  ids: readonly string[],
  checks: readonly ((id: string) => boolean)[],
): readonly string[] {
  for (const isUsable of checks) {
    const sample = takeSample(ids, Math.random, isUsable)
    if (sample.length === 0) continue
    const isMissed = home !== undefined && !sample.includes(home) && isUsable(home)
    return isMissed ? [home, ...sample.slice(1)] : sample
  }
  return []
}

function hasObjects(fleet: Fleet, nodeId: string): boolean {
  return fleet.member(nodeId).facts()?.hasObjects ?? false
}

interface Attempt<T> {
  readonly shape: NodeShape
  readonly nodeId: string
  /** The template is on this node only: its author can make creates fail, so they say nothing about the node. */
  readonly isPinned: boolean
  readonly start: (nodeId: string) => Promise<T>
}

async function attempt<T>(loads: Loads, breakers: Breakers, work: Attempt<T>): Promise<T> {
  const { nodeId, shape, isPinned, start } = work
  const reservation = loads.reserve(nodeId, shape)
  const circuit = breakers.begin(nodeId)
  try {
    const started = await start(nodeId)
    circuit.succeeded()
    reservation.settle()
    return started
  } catch (error) {
    reservation.cancel()
    if (!isPinned && isNodeToBlame(error)) circuit.failed()
    else circuit.undecided()
    throw error
  }
}

type Breakers = ReturnType<typeof createBreakers>

function createBreakers(clock: Clock) {
  const breakers = new Map<string, CircuitBreaker>()
  const nowMs = () => clock.now().getTime()
  const find = (nodeId: string): CircuitBreaker => {
    const breaker = breakers.get(nodeId) ?? createCircuitBreaker()
    breakers.set(nodeId, breaker)
    return breaker
  }
  return {
    isOpen: (nodeId: string) => !find(nodeId).isClosed(nowMs()),
    begin(nodeId: string) {
      const { begin, succeeded, failed, undecided } = find(nodeId)
      begin(nowMs())
      return { succeeded, undecided, failed: () => failed(nowMs()) }
    },
  }
}

/** Returns the IDs of the nodes in reach. If there are none, gives the nodes another chance to answer. */
async function findNodes(fleet: Fleet): Promise<readonly string[]> {
  const ids = fleet.ids()
  if (ids.length > 0) return ids
  const limit = AbortSignal.timeout(registerLimitMs)
  await Promise.allSettled(fleet.members().map((member) => member.register(limit, 'request')))
  return fleet.ids()
}

async function checkAccepts({ store }: PlacingPorts, nodeId: string): Promise<void> {
  const wanted = await store.find(nodeId)
  if (wanted && wanted.status !== 'ready') throw notAccepting(wanted.status)
}

function notAccepting(status: NodeStatus): Fault {
  return new Fault(
    'unavailable',
    'sandbox_capacity_unavailable',
    `The node is ${status} and takes no new sandboxes; try again later`,
  )
}

function noNode(): Fault {
  return new Fault('unavailable', 'node_unavailable', 'No node answers; try again later')
}

const elsewhere = new Set([
  'sandbox_capacity_unavailable',
  'disk_full',
  'node_unavailable',
  'node_changed',
  'node_busy',
  'node_unsuitable',
  'objects_unavailable',
])

function isTriedElsewhere(error: unknown): boolean {
  return error instanceof Fault && elsewhere.has(error.reason)
}

/** Requests that are wrong, teams over their limits and full nodes say nothing about the health of a node. */
function isNodeToBlame(error: unknown): boolean {
  const { kind, reason } = Fault.from(error)
  return (
    kind === 'internal' || reason === 'node_unavailable' || reason === 'sandbox_placement_timeout'
  )
}
