import type { Clock } from '@atoll/kit/clock'
import type { Logger } from '@atoll/kit/log'
import type { BuildStore } from '../../domain/builds/build.ts'

const batch = 20
const intervalMs = { whileThereAreMore: 1_000, usual: 60_000 }

/**
 * One pass: releases old builds that nothing has used for the grace period. The sweep of templates then removes their
 * files from the node, where layers stay as long as a sandbox, snapshot or other template uses them.
 */
export async function collectBuilds(ports: {
  readonly builds: Pick<BuildStore, 'findUnused' | 'collect'>
  readonly clock: Clock
  readonly log: Logger
  readonly graceMs: number
  /** Called after a build was collected: the node may have its files. */
  readonly onCollected: () => void
}): Promise<number> {
  const { builds, clock, log, graceMs, onCollected } = ports
  const now = clock.now()
  const unusedSince = new Date(now.getTime() - graceMs)
  const unused = await builds.findUnused(unusedSince, batch)
  for (const buildId of unused) {
    if (!(await builds.collect(buildId, { unusedSince, now }))) continue
    log.info({ event: 'build.collected', buildId })
    onCollected()
  }
  return unused.length === batch ? intervalMs.whileThereAreMore : intervalMs.usual
}
