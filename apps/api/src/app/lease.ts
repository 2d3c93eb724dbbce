import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import { checkSameNode } from '../domain/lease.ts'
import type { LeaseHolder, LeaseStore } from '../domain/lease.ts'
import { startLoop } from './loop.ts'

/**
 * Tells the other processes on the store that this one lives, so that they leave alone what it is making. Nothing
 * depends on the lease for being right: whoever lost it too early finds its sandbox taken down and says so.
 */
export interface Lease {
  /** Others may take over what this process was making from now on. */
  close(): Promise<void>
}

const renewMs = 2_000
/** Several renewals may fail, and clocks may differ by seconds. */
const lengthMs = 10_000
const forgetMs = 24 * 60 * 60 * 1000

/** To be called by one process at a time. Throws a `conflict` fault when the store belongs to another node. */
export async function startLease(
  own: LeaseHolder,
  deps: { readonly leases: LeaseStore; readonly clock: Clock; readonly log: Logger },
): Promise<Lease> {
  const { leases, clock, log } = deps
  const renew = async (): Promise<number> => {
    const now = clock.now().getTime()
    await leases.renew(own, new Date(now + lengthMs))
    await leases.deleteExpiredBefore(new Date(now - forgetMs))
    return renewMs
  }
  checkSameNode(own, await leases.listLive(clock.now()))
  await renew()
  const loop = startLoop('lease', renew, log)
  return {
    async close() {
      await loop.close()
      await leases.end(own.processId).catch((error: unknown) => {
        log.warn({ err: error }, 'the lease could not be ended; it runs out by itself')
      })
    },
  }
}
