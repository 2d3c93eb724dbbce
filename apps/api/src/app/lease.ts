import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import { checkSameNode } from '../domain/lease.ts'
import type { LeaseHolder, LeaseStore } from '../domain/lease.ts'
import { createLiveApis } from './live-apis.ts'
import type { LiveApis } from './live-apis.ts'
import { startLoop } from './loop.ts'

/**
 * Announces to the other processes on the store that this one is alive, so that they leave its sandboxes alone.
 * Correctness does not depend on the lease: a process that lost it early finds its sandbox killed and reports that.
 */
export interface Lease {
  readonly liveApis: LiveApis
  /** Ends the lease: from now on, other processes may take over the work of this one. */
  close(): Promise<void>
}

const renewMs = 2_000
/** Long enough for several failed renewals and for clocks that differ by seconds. */
const lengthMs = 10_000
const forgetMs = 24 * 60 * 60 * 1000

/** Must be called by one process at a time. Throws a `conflict` fault when the store belongs to another node. */
export async function startLease(
  own: LeaseHolder,
  deps: { readonly leases: LeaseStore; readonly clock: Clock; readonly log: Logger },
): Promise<Lease> {
  const { leases, clock, log } = deps
  const { note, unreached, ...liveApis } = createLiveApis(own.processId)
  const renew = async (): Promise<number> => {
    const now = clock.now().getTime()
    await leases.renew({ ...own, unreached }, new Date(now + lengthMs))
    await leases.deleteExpiredBefore(new Date(now - forgetMs))
    note(await leases.listLive(new Date(now)))
    return renewMs
  }
  checkSameNode(own, await leases.listLive(clock.now()))
  await renew()
  const loop = startLoop('lease', renew, log)
  return {
    liveApis,
    async close() {
      await loop.close()
      await leases.end(own.processId).catch((error: unknown) => {
        log.warn({ err: error }, 'the lease could not be ended; it expires by itself')
      })
    },
  }
}
