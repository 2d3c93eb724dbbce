import type { Clock } from '@atoll/kit/clock'
import type { LeaseStore } from '../../domain/lease.ts'
import type { SandboxNode } from '../../domain/node.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { transitionStates } from '../../domain/sandboxes/sandbox.ts'
import { agrees, isInTransition } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore, SandboxSummary } from '../../domain/sandboxes/sandbox-store.ts'
import type { Ending } from './ending.ts'
import type { Settle } from './settle.ts'

const intervalMs = 5_000
const listTimeoutMs = 10_000
const retentionMs = 7 * 24 * 60 * 60 * 1000
const batch = 1_000

const liveStates = ['running', 'paused', ...transitionStates] as const

export interface ReconcilePorts {
  readonly store: SandboxStore
  readonly node: SandboxNode
  readonly ending: Ending
  readonly settle: Settle
  readonly clock: Clock
  readonly leases: LeaseStore
  readonly processId: string
  /** Whether this process is creating, pausing, resuming or copying the sandbox. */
  readonly isUnderway: (id: string) => boolean
  /** Called when the node has a paused or unreadable sandbox without a record in the store. */
  readonly onUnknown: (id: string) => void
}

/** One pass: reconciles the records with the node. */
export async function reconcileSandboxes(
  ports: ReconcilePorts,
  signal: AbortSignal,
): Promise<number> {
  const { store, node, ending, clock } = ports
  // Read records first: a sandbox is on the node before its record says running, and stays there until the record
  // changes.
  const records = await store.listByState(['creating', ...liveStates, 'killing'])
  const onNode = await node.list(AbortSignal.any([signal, AbortSignal.timeout(listTimeoutMs)]))
  const isAbandoned = await findAbandoned(ports)
  for (const { id, state } of records) {
    if (state === 'creating') await sweepUnfinished(ending, id, isAbandoned)
    else if (state === 'killing') void ending.tryFinish(id)
    else if (!agrees({ state }, onNode.get(id)))
      await settleAbandoned(ports, { id, state }, isAbandoned)
  }
  const known = new Set(records.map(({ id }) => id))
  for (const [id, { state }] of onNode) {
    if (known.has(id)) continue
    // Check again: the sandbox may have been created since the records were read. Its record is always older.
    const record = await store.find(id)
    // Never remove a kept sandbox without a record: the store may be restored from an older backup.
    if (record ? record.state === 'ended' : state === 'running') void ending.tryFinish(id)
    else if (!record) ports.onUnknown(id)
  }
  await store.deleteEndedBefore(new Date(clock.now().getTime() - retentionMs), batch)
  return intervalMs
}

/**
 * Returns a check for records without a live owner. Call it after reading the records: a process takes its lease before
 * it creates a record, so the leases read here include every live owner.
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

/** Leaves sandboxes with a live owner alone; sets all others to the state that the node reports. */
async function settleAbandoned(
  { store, settle, isUnderway }: ReconcilePorts,
  { id, state }: SandboxSummary,
  isAbandoned: (sandbox: Sandbox) => boolean,
): Promise<void> {
  const current = await store.find(id)
  // The record changed: its new owner may have a lease newer than the list of leases.
  if (current?.state !== state || isUnderway(id)) return
  if (isInTransition(current) && !isAbandoned(current)) return
  await settle(id)
}
