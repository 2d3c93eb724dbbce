import type { Clock } from '@atoll/kit/clock'
import { failures, longestBuildMs, longestWaitMs } from '../domain/build.ts'
import type { BuildStore } from '../domain/build.ts'
import type { LeaseStore } from '../domain/lease.ts'
import type { Builder } from './builder.ts'

const intervalMs = 2_000

/** One pass: builds that nobody starts or carries out fail, and those are stopped that failed in the records. */
export async function settleBuilds(ports: {
  readonly builds: BuildStore
  readonly builder: Builder
  readonly leases: LeaseStore
  readonly clock: Clock
  readonly processId: string
  /** Something of a build may have to be removed from the node. */
  readonly onEnded: () => void
}): Promise<number> {
  const { builds, builder, leases, clock, processId, onEnded } = ports
  const now = clock.now()
  await builds.failWaiting(new Date(now.getTime() - longestWaitMs), failures.expired, now)

  // Before the records: what was under way by then and is not there any more is gone.
  const ours = builder.list()
  const held = await builds.listHeld()
  const statuses = new Map(held.map(({ id, status }) => [id, status]))
  for (const { id, startedAt } of ours) {
    const status = statuses.get(id)
    if (status === undefined) builder.abort(id, failures.deleted)
    else if (status !== 'building') builder.abort(id, failures.cancelled)
    else if (startedAt && now.getTime() - startedAt.getTime() > longestBuildMs) {
      builder.abort(id, failures.tooLong)
    }
  }

  // Records before leases: a process has its lease before it builds anything.
  const live = new Set((await leases.listLive(now)).map((holder) => holder.processId))
  for (const { id, holder } of held) {
    const isAtWork = holder === processId ? builder.isUnderway(id) : live.has(holder)
    // By its holder's name: whoever has come to the end of it meanwhile has let go of it.
    if (isAtWork) continue
    await builds.finish(id, holder, { failure: failures.abandoned }, now)
    onEnded()
  }
  return intervalMs
}
