import type { SandboxNode } from '../../domain/node.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { transitionStates } from '../../domain/sandboxes/sandbox.ts'
import {
  agrees,
  isDurable,
  isInTransition,
  isOutdated,
  isSameContent,
  noteContent,
} from '../../domain/sandboxes/sandbox-pause.ts'
import type { OnNode, PausedOnNode } from '../../domain/sandboxes/sandbox-pause.ts'
import type { OwnedSandbox, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Ending } from './ending.ts'
import { findAbandoned } from './find-abandoned.ts'
import type { OwnerPorts } from './find-abandoned.ts'
import type { Settle } from './settle.ts'

const intervalMs = 5_000
const listTimeoutMs = 10_000
const retentionMs = 7 * 24 * 60 * 60 * 1000
const batch = 1_000

const liveStates = ['running', 'paused', ...transitionStates] as const

export interface ReconcilePorts extends OwnerPorts {
  readonly store: SandboxStore
  readonly ending: Ending
  readonly settle: Settle
  /** Called when the node has a paused or unreadable sandbox that no record explains. */
  readonly onUnknown: (id: string) => void
}

/** A node in the epoch that the store knows. Answers of another epoch fail, so they end no record. */
export interface ReconciledNode {
  readonly id: string
  readonly sandboxes: Pick<SandboxNode, 'list'>
}

/** One pass: reconciles a node with the records that name it. */
export async function reconcileSandboxes(
  ports: ReconcilePorts,
  node: ReconciledNode,
  signal: AbortSignal,
): Promise<number> {
  const { store, ending } = ports
  // Read records first: a sandbox is on the node before its record says running, and stays there until the record
  // changes.
  const records = await store.listOfNode(node.id, ['creating', ...liveStates, 'killing'])
  const limit = AbortSignal.any([signal, AbortSignal.timeout(listTimeoutMs)])
  const onNode = await node.sandboxes.list(limit)
  let abandoned: ReturnType<typeof findAbandoned> | undefined
  const readLeases = () => (abandoned ??= findAbandoned(ports))
  for (const record of records) {
    const found = onNode.get(record.id)
    if (record.state === 'creating') await sweepUnfinished(ending, record.id, await readLeases())
    else if (record.state === 'killing') void ending.tryFinish(newest(record, found))
    // A resume fetches what the node has lost.
    else if (!found && record.state === 'paused' && isDurable(record)) continue
    else if (!agrees(record, found)) await settleAbandoned(ports, record, await readLeases())
    else await noteIfChanged(store, record, found)
  }
  const known = new Set(records.map(({ id }) => id))
  for (const [id, found] of onNode)
    if (!known.has(id)) await checkUnowned(ports, node.id, id, found)
  return intervalMs
}

/** One pass: deletes records of sandboxes that ended long ago. */
export async function deleteEnded({
  store,
  clock,
}: Pick<ReconcilePorts, 'store' | 'clock'>): Promise<number> {
  await store.deleteEndedBefore(new Date(clock.now().getTime() - retentionMs), batch)
  return intervalMs
}

/** Notes which content a paused sandbox has, and whether the object store has it. */
async function noteIfChanged(
  store: SandboxStore,
  record: OwnedSandbox,
  found: OnNode,
): Promise<void> {
  const { id, nodeId, state, generation, durableGeneration } = record
  if (state !== 'paused' || found?.state !== 'paused') return
  const isNewlyDurable = found.isDurable && durableGeneration !== found.keptGeneration
  if (isOutdated(record, found) || (isSameContent(record, found) && !isNewlyDurable)) return
  // The generation shows that the sandbox was not resumed since the node answered.
  await store.update(id, (current) =>
    current.state === state && current.nodeId === nodeId && current.generation === generation
      ? noteContent(current, found)
      : current,
  )
}

/**
 * Ends a sandbox that no record assigns to the node, unless its files may still be needed: whatever the store says, it may be
 * older than a pause (decision 63).
 */
async function checkUnowned(
  { store, ending, onUnknown }: ReconcilePorts,
  nodeId: string,
  id: string,
  found: NonNullable<OnNode>,
): Promise<void> {
  const onThisNode = newest({ id, nodeId, generation: 0 }, found)
  // Check again: the sandbox may have been created since the records were read. Its record is always older.
  const record = await store.find(id)
  if (!record) {
    // Never remove a kept sandbox without a record: the store may be restored from an older backup.
    if (found.state === 'running') void ending.tryFinish({ ...onThisNode, isElsewhere: true })
    else onUnknown(id)
    return
  }
  if (record.state === 'ended') {
    const { isKillRequested } = record
    const isSuperseded = found.state === 'paused' && wasResumedLater(record, found)
    const mayEnd = found.state !== 'paused' || isKillRequested || isSuperseded
    // Objects stay: the objects that the record knows of are deleted by another pass.
    const isElsewhere = isSuperseded && !isKillRequested
    const end = { ...onThisNode, isKillRequested, isSuperseded, isElsewhere }
    if (mayEnd) void ending.tryFinish(end)
    else onUnknown(id)
    return
  }
  if (record.nodeId === nodeId) return
  const isSuperseded = isSupersededCopy(record, found)
  if (isSuperseded) void ending.tryFinish({ ...onThisNode, isElsewhere: true, isSuperseded })
  else onUnknown(id)
}

/**
 * Whether the sandbox ran in a newer generation than that of the content. A sandbox that ended while it was paused keeps its
 * files: a node that has lost them for a while makes its record end.
 */
function wasResumedLater(ended: Sandbox, found: PausedOnNode): boolean {
  return (
    ended.kept === undefined && ended.startedAt !== undefined && found.generation < ended.generation
  )
}

/**
 * Whether a node may forget a sandbox that another node has: it was started or paused there later, or the object store has
 * the same content. What cannot be compared is kept.
 */
function isSupersededCopy(record: Sandbox, found: NonNullable<OnNode>): boolean {
  if (found.state === 'quarantined') return false
  if (record.state !== 'running' && record.state !== 'paused') return false
  if (record.state === 'running' || found.state === 'running') {
    return record.generation > found.generation
  }
  const { keptGeneration, isDurable: isUploaded = false } = found
  if (keptGeneration === undefined || record.keptGeneration === undefined) return false
  return keptGeneration < record.keptGeneration || (isUploaded && isSameContent(found, record))
}

/** Returns the sandbox with the generation that the node has, if that is newer. */
function newest<T extends { readonly generation: number }>(sandbox: T, found: OnNode): T {
  if (!found || found.state === 'quarantined') return sandbox
  return { ...sandbox, generation: Math.max(sandbox.generation, found.generation) }
}

async function sweepUnfinished(
  ending: Ending,
  id: string,
  isAbandoned: (sandbox: Sandbox) => boolean,
): Promise<void> {
  const left = await ending.begin(
    id,
    'was never finished: the server stopped while it was being created',
    (current) => current.state === 'creating' && isAbandoned(current),
  )
  if (left) void ending.tryFinish(left)
}

/** Leaves sandboxes with a live owner alone; sets all others to the state that their node reports. */
async function settleAbandoned(
  { store, settle, isUnderway }: ReconcilePorts,
  { id, nodeId, state }: OwnedSandbox,
  isAbandoned: (sandbox: Sandbox) => boolean,
): Promise<void> {
  const current = await store.find(id)
  // The record changed: its new owner may have a lease newer than the list of leases.
  if (current?.state !== state || current.nodeId !== nodeId || isUnderway(id)) return
  if (isInTransition(current) && !isAbandoned(current)) return
  await settle(id)
}
