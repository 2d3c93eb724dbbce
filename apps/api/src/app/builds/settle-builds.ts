import type { Clock } from '@atoll/kit/clock'
import { failures, maxBuildMs, maxWaitMs } from '../../domain/builds/build.ts'
import type { BuildStore } from '../../domain/builds/build.ts'
import type { LeaseStore } from '../../domain/lease.ts'
import type { Builder } from './builder.ts'

const intervalMs = 2_000

/**
 * One pass: fails builds that were never started or whose owner is gone, and stops builds that have failed in the
 * store.
 */
export async function settleBuilds(ports: {
  readonly builds: BuildStore
  readonly builder: Builder
  readonly leases: LeaseStore
  readonly clock: Clock
  readonly processId: string
  /** Called when a build ends: the node may have leftovers to remove. */
  readonly onEnded: () => void
}): Promise<number> {
  const { builds, builder, leases, clock, processId, onEnded } = ports
  const now = clock.now()
  await builds.failWaiting(new Date(now.getTime() - maxWaitMs), failures.expired, now)

  // List before reading the records: a listed build without a record has been deleted.
  const ours = builder.list()
  const held = await builds.listHeld()
  const statuses = new Map(held.map(({ id, status }) => [id, status]))
  for (const { id, startedAt } of ours) {
    const status = statuses.get(id)
    if (status === undefined) builder.abort(id, failures.deleted)
    else if (status !== 'building') builder.abort(id, failures.cancelled)
    else if (startedAt && now.getTime() - startedAt.getTime() > maxBuildMs) {
      builder.abort(id, failures.tooLong)
    }
  }

  // Read records before leases: a process takes its lease before it starts a build.
  const live = new Set((await leases.listLive(now)).map((holder) => holder.processId))
  for (const { id, holder } of held) {
    const isInProgress = holder === processId ? builder.isUnderway(id) : live.has(holder)
    // `finish` checks the holder, so a build that has ended meanwhile stays unchanged.
    if (isInProgress) continue
    await builds.finish(id, holder, { failure: failures.abandoned }, now)
    onEnded()
  }
  return intervalMs
}
