/**
 * Ends the records of a node that an operator has declared permanently lost. First the node is marked: it can never join again,
 * so its sandboxes never run again, and no api asks it to delete anything. All later steps follow from the mark and can be
 * repeated, so a crash between them costs nothing.
 */
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { FleetMember, FleetStore, NodeAddress } from '../../domain/fleet-member.ts'
import type { NodeLink } from '../../domain/node.ts'
import type { NodeFileStore } from '../../domain/node-files.ts'
import type { BuildStore } from '../../domain/builds/build.ts'
import { endWithNode, maybeUploaded } from '../../domain/sandboxes/lost-node.ts'
import type { SandboxState } from '../../domain/sandboxes/sandbox.ts'
import { isSameContent } from '../../domain/sandboxes/sandbox-pause.ts'
import type { LostSandbox, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { SnapshotStore } from '../../domain/snapshot.ts'
import { startLoop } from '../loop.ts'
import type { Loop } from '../loop.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { RecoverResumes } from '../sandboxes/recover-resumes.ts'
import { createAskUploaded } from './ask-uploaded.ts'
import { noteUploads } from './note-uploaded.ts'

export interface ForgottenNode {
  /** Whether nothing is left to do. If not, call again. */
  readonly isDone: boolean
  /** Sandboxes that this call has ended: they ran, or were about to. */
  readonly endedRunning: number
  /** Paused sandboxes that this call has ended: the object store does not have their content. */
  readonly endedPaused: number
  /** Kills that this call has finished. */
  readonly finishedKills: number
  /** Paused sandboxes that any other node can resume. */
  readonly keptPaused: number
  /** Snapshots that this call has deleted: only the node had their files. */
  readonly lostSnapshots: number
  /** Builds of templates that this call has failed, for the same reason. */
  readonly lostTemplates: number
}

export interface Forgetting {
  /**
   * Marks a node as gone for good, and ends some of its records. Throws a fault if the node may still work, or if the object
   * store cannot be asked what the node has uploaded. Call again until it is done.
   */
  forget(nodeId: string): Promise<ForgottenNode>
  /** Ends what is left of nodes that were forgotten: after a crash, and of requests that were under way. */
  start(): Loop
}

interface ForgetPorts {
  readonly members: Pick<FleetStore, 'findMember' | 'forget' | 'listForgotten' | 'lastSeen'>
  readonly sandboxes: Pick<SandboxStore, 'listLostWith' | 'countPausedOf' | 'update'>
  readonly files: NodeFileStore
  readonly snapshots: Pick<SnapshotStore, 'markDurable'>
  readonly builds: Pick<BuildStore, 'markDurable'>
  readonly fleet: Pick<Fleet, 'ids' | 'member' | 'members'>
  /** Opens a connection to a node, also to one that was removed. */
  connect(node: Omit<NodeAddress, 'seenAt'>): {
    readonly link: Pick<NodeLink, 'describe'>
    close(): void
  }
  readonly recoverResumes: RecoverResumes
  readonly clock: Clock
  readonly log: Logger
  /** A node that is silent for so long is lost. */
  readonly lostMs: number
}

/** Longer than an api takes to disconnect from a removed node: it reads the members every 2 s. */
const disconnectMs = 10_000
/** Keeps the answer to a request well below the time limits of clients. */
const batch = 500
const answerLimitMs = 5_000
const intervalMs = 30_000
/** Leaves a new node to the request of the operator, who wants to know what became of its sandboxes. */
const graceMs = 5 * 60_000

const nothing = {
  ...{ endedRunning: 0, endedPaused: 0, finishedKills: 0 },
  ...{ keptPaused: 0, lostSnapshots: 0, lostTemplates: 0 },
}

export function createForgetting(ports: ForgetPorts): Forgetting {
  const { members, clock, log } = ports
  return {
    async forget(nodeId) {
      const member = await members.findMember(nodeId)
      if (!member) throw noMember(nodeId)
      if (member.role !== 'node') throw notANode(member)
      if (!member.forgottenAt) {
        await checkSilent(ports, nodeId)
        await members.forget(nodeId, clock.now())
        log.warn(
          { event: 'node.forget', nodeId },
          'An operator says that the node never comes back',
        )
      }
      const forgottenAt = member.forgottenAt ?? clock.now()
      const isDisconnected = clock.now().getTime() - forgottenAt.getTime() >= disconnectMs
      return isDisconnected ? endBatch(ports, nodeId) : { isDone: false, ...nothing }
    },
    start: () => startLoop('forget nodes', (signal) => endOld(ports, signal), log),
  }
}

/** One pass: ends a batch of each node. */
async function endOld(ports: ForgetPorts, signal: AbortSignal): Promise<number> {
  const before = new Date(ports.clock.now().getTime() - graceMs)
  let isMore = false
  for (const nodeId of await ports.members.listForgotten(before)) {
    if (signal.aborted) break
    try {
      isMore = !(await endBatch(ports, nodeId)).isDone || isMore
    } catch (error) {
      // Other nodes must not wait for this one.
      ports.log.error({ err: error, event: 'node.forget', nodeId }, 'Records are left; tried again')
    }
  }
  return isMore ? 0 : intervalMs
}

/** A node that was removed sends no heartbeats that count, but it may still run sandboxes: so it is asked. */
async function checkSilent(ports: ForgetPorts, nodeId: string): Promise<void> {
  const { members, clock, lostMs } = ports
  const { at, address } = await members.lastSeen(nodeId)
  const silentMs = at ? clock.now().getTime() - at.getTime() : Number.POSITIVE_INFINITY
  if (silentMs < lostMs) {
    const ago = `${Math.max(0, Math.round(silentMs / 1000))} s ago`
    throw stillThere(nodeId, `its last heartbeat was ${ago}`, lostMs)
  }
  if (address === undefined) return
  const connection = ports.connect({ id: nodeId, address })
  try {
    const answers = connection.link.describe(AbortSignal.timeout(answerLimitMs)).then(
      () => true,
      () => false,
    )
    if (await answers) throw stillThere(nodeId, 'it answers', lostMs)
  } finally {
    connection.close()
  }
}

async function endBatch(ports: ForgetPorts, nodeId: string): Promise<ForgottenNode> {
  const { sandboxes, files, clock, recoverResumes } = ports
  // A resume that no process works on any more leaves a paused sandbox.
  await recoverResumes(nodeId)
  const found = await sandboxes.listLostWith(nodeId, batch)
  const builds = await files.listLost(nodeId, batch)
  // The node may have uploaded contents while no api reached it. Nothing ends before that is known.
  const ask = createAskUploaded(ports.fleet, nodeId)
  await noteUploads(ports, ask, nodeId, { sandboxes: found, builds })
  const counts = await endSandboxes(ports, nodeId, found)
  const buildIds = builds.map(({ buildId }) => buildId)
  const lost = await files.failLost(nodeId, buildIds, clock.now())
  const isDone = found.length < batch && builds.length < batch
  if (isDone) await handOver(ports, nodeId)
  return {
    ...{ isDone, ...counts },
    keptPaused: isDone ? await sandboxes.countPausedOf(nodeId) : 0,
    ...{ lostSnapshots: lost.snapshots, lostTemplates: lost.templates },
  }
}

/** Ends sandboxes, except those whose content is in the object store, or is not the one that the store was asked for. */
async function endSandboxes(
  ports: Pick<ForgetPorts, 'sandboxes' | 'clock'>,
  nodeId: string,
  found: readonly LostSandbox[],
) {
  const counts = { endedRunning: 0, endedPaused: 0, finishedKills: 0 }
  for (const sandbox of found) {
    const before = await endOne(ports, nodeId, sandbox)
    if (before !== undefined) counts[countOf(before)] += 1
  }
  return counts
}

/** Returns the state that the sandbox had. Undefined: it does not end. */
async function endOne(
  { sandboxes, clock }: Pick<ForgetPorts, 'sandboxes' | 'clock'>,
  nodeId: string,
  found: LostSandbox,
): Promise<SandboxState | undefined> {
  let before: SandboxState | undefined
  await sandboxes.update(found.id, (current) => {
    const content = maybeUploaded(current)
    const isAsked = content === undefined || isSameContent(content, found)
    const after = isAsked ? endWithNode(current, nodeId, clock.now()) : current
    before = after === current ? undefined : current.state
    return after
  })
  return before
}

function countOf(before: SandboxState): 'endedRunning' | 'endedPaused' | 'finishedKills' {
  if (before === 'killing') return 'finishedKills'
  return before === 'paused' ? 'endedPaused' : 'endedRunning'
}

/** A node with access to the object store can fetch what the forgotten one had, and can delete its objects. */
async function handOver({ fleet, files }: ForgetPorts, nodeId: string): Promise<void> {
  const others = fleet.ids().filter((id) => id !== nodeId)
  const able = others.find((id) => fleet.member(id).facts()?.hasObjects)
  const [other] = others
  if (able !== undefined) await files.handOver(nodeId, able, 'all')
  else if (other !== undefined) await files.handOver(nodeId, other, 'unpublished')
}

function noMember(id: string): Fault {
  return new Fault('not_found', 'member_not_found', `The fleet has and had no node ${id}`)
}

function notANode({ id }: FleetMember): Fault {
  const message = `${id} is an edge, and edges have no sandboxes: use atoll node remove ${id} without --forget`
  return new Fault('conflict', 'member_is_edge', message)
}

function stillThere(id: string, why: string, lostMs: number): Fault {
  return new Fault(
    'conflict',
    'node_answers',
    `Node ${id} may still work: ${why}. Only a node that is gone can be forgotten. Stop its agent and machine, and try again when it has been silent for ${lostMs / 1000} s; to empty a node that works, use atoll node drain --move ${id}`,
  )
}
