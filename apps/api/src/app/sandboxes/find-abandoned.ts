import type { Clock } from '@atoll/kit/clock'
import type { LeaseStore } from '../../domain/lease.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'

export interface OwnerPorts {
  readonly clock: Clock
  readonly leases: LeaseStore
  readonly processId: string
  /** Whether this process is creating, pausing, resuming or copying the sandbox. */
  readonly isUnderway: (id: string) => boolean
}

/**
 * Returns a check for records without a live owner. Call it after reading the records: a process takes its lease before
 * it creates a record, so the leases read here include every live owner.
 */
export async function findAbandoned(ports: OwnerPorts): Promise<(sandbox: Sandbox) => boolean> {
  const { leases, clock, processId, isUnderway } = ports
  const holders = await leases.listLive(clock.now())
  const live = new Set(holders.map((holder) => holder.processId))
  return ({ id, holder }) => {
    if (holder === processId) return !isUnderway(id)
    return holder === undefined || !live.has(holder)
  }
}
