import { captureContext } from '@atoll/kit/async-context'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { NodeFacts, NodeLink, SandboxNode } from '../../domain/node.ts'
import type { NodeStore } from '../../domain/node-record.ts'
import { createReach } from './reach.ts'
import type { Reach } from './reach.ts'
import { repeatingNode } from './repeat-if-restarted.ts'

/** Nodes that this process reaches. A record names its node, and only that node is asked about it. */
export interface Fleet {
  /** Lists all nodes that this process knows, also those out of reach. */
  members(): readonly Member[]
  /** Number of members. */
  size(): number
  /** Adds a node. Returns a function that removes it. */
  add(link: NodeLink): () => Promise<void>
  /** Runs `start` for each node, now and when one is added. Closes what it returned when the node is removed. */
  forEach(start: (member: Member) => Closable): Closable
  /** Does the same for nodes that have answered and that the store has accepted: calls before would fail. */
  forEachRegistered(start: (member: Member) => Closable): Closable
  /** Throws an `unavailable` fault when this process does not reach the node. */
  member(nodeId: string): Member
  /** Returns the sandbox operations of a node, which are repeated if its agent has restarted. Throws like `member`. */
  of(nodeId: string): SandboxNode
  reaches(nodeId: string): boolean
  /** Lists the nodes in reach. Returns the same array until a node comes, goes or is replaced. */
  ids(): readonly string[]
  /** Returns a node for work that any node can do. Throws when there is none. */
  any(): Member
}

interface Closable {
  close(): Promise<void>
}

export interface Member extends Omit<NodeLink, 'id' | 'describe' | 'address'> {
  /** ID by the certificate of the node, or by its last answer. Undefined: not known yet. */
  id(): string | undefined
  /** Whether the store accepts the epoch of the node. */
  isRegistered(): boolean
  /** Last answer of the node to `register`; undefined if it has not answered yet. */
  facts(): NodeFacts | undefined
  /**
   * Asks the node who it is, and makes sure that the store accepts its epoch. Later calls go to this agent only. Throws
   * a `node_superseded` fault when the node runs on outdated data. With `request`, a request waits for it: it does not queue
   * for the store behind visits of nodes.
   */
  register(signal: AbortSignal, by?: 'visit' | 'request'): Promise<NodeFacts>
}

type Registrations = Pick<NodeStore, 'register' | 'claimRecords'>

interface FleetPorts {
  readonly store: Registrations
  /** The same records, for visits of nodes. Default: `store`. */
  readonly background?: Registrations
  readonly clock: Clock
  readonly log: Logger
}

export function createFleet(ports: FleetPorts): Fleet {
  const known = createReach<Member>()
  const members = new Set<Member>()
  const works = new Set<Work>()
  // A request can be the first to reach a node. What runs from then on must not count as part of it in traces.
  const outsideRequests = captureContext()
  const admit = (id: string, one: Member): void => {
    // A node that was removed while it answered stays removed.
    if (!members.has(one)) return
    known.set(id, one)
    outsideRequests(() => works.forEach((work) => work.begin(one)))
  }
  const membership: Membership = { known, admit, areRecordsClaimed: false }
  const run = (work: Work): Closable => {
    works.add(work)
    for (const one of members) work.begin(one)
    const close = async () => {
      works.delete(work)
      await work.close()
    }
    return { close }
  }
  const member = (nodeId: string): Member => {
    const found = known.get(nodeId)
    if (found) return found
    throw new Fault(
      'unavailable',
      'node_unavailable',
      'The node of the sandbox does not answer; try again later',
      { cause: new Error(`node ${nodeId} is not in reach`) },
    )
  }
  return {
    members: () => [...members],
    size: () => members.size,
    add(link) {
      const added = createMember(ports, link, membership)
      members.add(added)
      for (const work of works) work.begin(added)
      return async () => {
        members.delete(added)
        for (const [id, one] of known.entries()) if (one === added) known.delete(id)
        await Promise.all([...works].map((work) => work.end(added)))
      }
    },
    forEach: (start) => run(createWork(start)),
    forEachRegistered: (start) => run(createWork(start, (one) => one.isRegistered())),
    member,
    of: (nodeId) => repeatingNode(member(nodeId), () => member(nodeId).sandboxes),
    reaches: (nodeId) => known.has(nodeId),
    ids: () => known.ids(),
    any() {
      const [id] = known.ids()
      if (id !== undefined) return member(id)
      const [first] = members
      if (first) return first
      throw new Fault('unavailable', 'node_unavailable', 'There is no node: add one')
    },
  }
}

type Work = ReturnType<typeof createWork>

/** Keeps what runs for each node for which `isReady`. */
function createWork(
  start: (member: Member) => Closable,
  isReady: (member: Member) => boolean = () => true,
) {
  const running = new Map<Member, Closable>()
  const end = async (member: Member): Promise<void> => {
    const closable = running.get(member)
    running.delete(member)
    await closable?.close()
  }
  return {
    begin(member: Member): void {
      if (!running.has(member) && isReady(member)) running.set(member, start(member))
    },
    end,
    close: async () => void (await Promise.all([...running.keys()].map(end))),
  }
}

interface Membership {
  readonly known: Reach<Member>
  /** Whether every record names its node. Only releases without nodes wrote others. */
  areRecordsClaimed: boolean
  admit(id: string, member: Member): void
}

function createMember(ports: FleetPorts, link: NodeLink, membership: Membership): Member {
  const { known, admit } = membership
  const { store: urgent, background = urgent, clock, log } = ports
  const { sandboxes, builds, catalogue, logs, changes, connections } = link
  let facts: NodeFacts | undefined

  /** ID under which the node has claimed records; the claim is repeated until it succeeds. */
  let claimedAs: string | undefined

  const accept = async (found: NodeFacts, store: Registrations): Promise<void> => {
    if (facts && facts.id !== found.id) known.delete(facts.id)
    facts = found
    link.address(found)
    if (!membership.areRecordsClaimed && claimedAs !== found.id) {
      const left = await store.claimRecords(found.id)
      if (left > 0)
        log.error(
          { sandboxes: left },
          'There are sandboxes of an old Atoll version whose node is unknown. They stay unavailable: the version was upgraded with more than one node.',
        )
      claimedAs = found.id
      membership.areRecordsClaimed = left === 0
    }
    admit(found.id, member)
  }
  const member: Member = {
    ...{ sandboxes, builds, catalogue, logs, changes, connections },
    id: () => link.id ?? facts?.id,
    facts: () => facts,
    isRegistered: () => facts !== undefined && known.get(facts.id) === member,
    async register(signal, by = 'visit') {
      const store = by === 'request' ? urgent : background
      const found = await link.describe(signal)
      if ((await store.register(found, clock.now())) === 'registered') {
        await accept(found, store)
        return found
      }
      if (known.get(found.id) === member) known.delete(found.id)
      throw superseded(found)
    },
  }
  return member
}

function superseded({ id, epoch }: NodeFacts): Fault {
  return new Fault(
    'conflict',
    'node_superseded',
    `Node ${id} answers in epoch ${epoch}, and a newer one is registered. It runs on a copy or an old backup of its data, so it is not used: stop it, and start the newer one`,
  )
}

/** Returns the ID of a registered node. Throws an `unavailable` fault for others. */
export function idOf(member: Member): string {
  const facts = member.facts()
  if (facts && member.isRegistered()) return facts.id
  throw new Fault('unavailable', 'node_unavailable', 'The node does not answer; try again later')
}
