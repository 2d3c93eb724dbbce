import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { LeaseStore } from '../../domain/lease.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { NetworkChanges } from './network.ts'

const intervalMs = 5_000

/** One pass: rolls back network changes whose owner is gone. */
export async function settleNetworks(ports: {
  readonly store: SandboxStore
  readonly changes: NetworkChanges
  readonly leases: LeaseStore
  readonly clock: Clock
  readonly processId: string
  readonly log: Logger
}): Promise<number> {
  const { store, changes, leases, clock, processId, log } = ports
  const found = await store.listNetworkChanges()
  if (found.length === 0) return intervalMs
  // Read leases after the changes: a process takes its lease before it starts a change.
  const live = new Set((await leases.listLive(clock.now())).map((holder) => holder.processId))
  const isLeft = (holder: string) => holder === processId || !live.has(holder)
  const left = found.filter(({ id, holder }) => isLeft(holder) && !changes.isUnderway(id))
  await Promise.all(
    left.map(({ id }) =>
      changes.settle(id, isLeft).catch((err: unknown) => {
        log.warn(
          { err, sandboxId: id },
          'an interrupted change of network rules could not be undone; the next pass tries again',
        )
      }),
    ),
  )
  return intervalMs
}
