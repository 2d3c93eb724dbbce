import type { Logger } from '@atoll/kit/log'
import { forgetIssued } from '../app/forget-issued.ts'
import { startLoop } from '../app/loop.ts'
import { idOf } from '../app/nodes/fleet.ts'
import { startVisits } from '../app/nodes/visits.ts'
import { reportOnce } from '../app/report-once.ts'
import { createForkSandbox } from '../app/snapshots/fork-sandbox.ts'
import type { ForkSandbox } from '../app/snapshots/fork-sandbox.ts'
import { createSnapshots } from '../app/snapshots/snapshots.ts'
import type { Snapshots } from '../app/snapshots/snapshots.ts'
import { sweepSnapshots } from '../app/snapshots/sweep-snapshots.ts'
import type { Core } from './core.ts'
import type { SandboxParts } from './sandboxes.ts'

/** Snapshots and forks. */
export interface SnapshotParts {
  readonly snapshots: Snapshots
  readonly fork: ForkSandbox
  close(): Promise<void>
}

export function startSnapshots(
  core: Core,
  { copying, launching }: Pick<SandboxParts, 'copying' | 'launching'>,
): SnapshotParts {
  const { stores, fleet, liveApis, placing, clock, log, limitsOf, processId } = core
  const { snapshots, templates, teams, issuedFiles } = stores
  const onUnknown = createUnknownReport(log)
  const { background } = stores
  const shared = { ...background, copying, clock, processId, onUnknown }
  const sweeper = fleet.forEachRegistered((member) =>
    startVisits(
      'sweep snapshots',
      async (signal) => {
        const hasObjects = member.facts()?.hasObjects ?? false
        const node = { id: idOf(member), hasObjects, sandboxes: member.sandboxes }
        return sweepSnapshots({ ...shared, node, isMine: liveApis.isMine(node.id) }, signal)
      },
      { fleet, log },
    ),
  )
  const forgetting = startLoop(
    'forget deleted files',
    () => forgetIssued({ issuedFiles, clock }),
    log,
  )
  return {
    snapshots: createSnapshots({ snapshots, templates, teams, copying, clock }),
    fork: createForkSandbox({
      ...{ copying, launching, templates, limitsOf, placing, log },
    }),
    async close() {
      await Promise.all([sweeper.close(), forgetting.close()])
    },
  }
}

function createUnknownReport(log: Logger): (snapshotId: string) => void {
  return reportOnce((snapshotId) =>
    log.warn(
      { event: 'snapshot.unknown', snapshotId },
      'The node has a snapshot that the store never had. Atoll leaves it alone; if the store was restored from an older backup, restore a newer one.',
    ),
  )
}
