import type { Clock } from '@atoll/kit/clock'
import type { LeaseStore } from '../domain/lease.ts'
import type { SandboxNode } from '../domain/node.ts'
import type { Sandbox } from '../domain/sandbox.ts'
import { passingStates } from '../domain/sandbox.ts'
import { agrees, isPassing } from '../domain/sandbox-pause.ts'
import type { SandboxStore, SandboxSummary } from '../domain/sandbox-store.ts'
import type { Ending } from './ending.ts'
import type { Settle } from './settle.ts'

const intervalMs = 5_000
const listTimeoutMs = 10_000
const retentionMs = 7 * 24 * 60 * 60 * 1000
const batch = 1_000

const liveStates = ['running', 'paused', ...passingStates] as const

export interface ReconcilePorts {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly ending: Ending
  readonly settle: Settle
  readonly clock: Clock
  readonly leases: LeaseStore
  readonly processId: string
  /** Whether this process is creating, pausing, resuming or copying it right now. */
  readonly isUnderway: (id: string) => boolean
  /** The node keeps a paused or unreadable sandbox that the store has never heard of. */
  readonly onUnknown: (id: string) => void
}

/** One pass: brings records and node together, whatever happened to either. */
export async function reconcileSandboxes(
  ports: ReconcilePorts,
  signal: AbortSignal,
): Promise<number> {
  const { store, node, ending, clock } = ports
  // Records first: a sandbox is on the node before its record says running, and until that says otherwise.
  const records = await store.listByState(['creating', ...liveStates, 'killing'])
  const onNode = await node.list(AbortSignal.any([signal, AbortSignal.timeout(listTimeoutMs)]))
  const isAbandoned = await findAbandoned(ports)
  for (const { id, state } of records) {
    if (state === 'creating') await sweepUnfinished(ending, id, isAbandoned)
    else if (state === 'killing') void ending.tryFinish(id)
    else if (!agrees({ state }, onNode.get(id))) await settleLeft(ports, { id, state }, isAbandoned)
  }
  const known = new Set(records.map(({ id }) => id))
  for (const [id, { state }] of onNode) {
    if (known.has(id)) continue
    // It may have been created since the records were read: a record is older than its sandbox.
    const record = await store.find(id)
    // Without any record a kept sandbox is not ours to remove: the store may be an older copy of itself.
    if (record ? record.state === 'ended' : state === 'running') void ending.tryFinish(id)
    else if (!record) ports.onUnknown(id)
  }
  await store.deleteEndedBefore(new Date(clock.now().getTime() - retentionMs), batch)
  return intervalMs
}

/**
 * Which of the records that were read before have nobody left who is at them. A process has its lease before it makes
 * anything, so none of those is missing from the leases that are read now.
 */
async function findAbandoned(ports: ReconcilePorts): Promise<(sandbox: Sandbox) => boolean> {
  const { leases, clock, processId, isUnderway } = ports
  const holders = await leases.listLive(clock.now())
  const live = new Set(holders.map((holder) => holder.processId))
  return ({ id, holder }) => {
    if (holder === processId) return !isUnderway(id)
    return holder === undefined || !live.has(holder)
  }
}

async function sweepUnfinished(
  ending: Ending,
  id: string,
  isAbandoned: (sandbox: Sandbox) => boolean,
): Promise<void> {
  const isLeft = await ending.begin(
    id,
    'was never finished: the server stopped while it was being created',
    (current) => current.state === 'creating' && isAbandoned(current),
  )
  if (isLeft) void ending.tryFinish(id)
}

/** What somebody is at is theirs; the rest becomes what the node says. */
async function settleLeft(
  { store, settle, isUnderway }: ReconcilePorts,
  { id, state }: SandboxSummary,
  isAbandoned: (sandbox: Sandbox) => boolean,
): Promise<void> {
  const current = await store.find(id)
  // What has changed since was changed by somebody whose lease may be newer than those that were read.
  if (current?.state !== state || isUnderway(id)) return
  if (isPassing(current) && !isAbandoned(current)) return
  await settle(id)
}
