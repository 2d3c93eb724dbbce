import { startLoop } from '../app/loop.ts'
import { idOf } from '../app/nodes/fleet.ts'
import { paceOf } from '../app/nodes/pace.ts'
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
  const { stores, fleet, placing, clock, log, limitsOf, processId } = core
  const { snapshots, templates, teams, leases } = stores
  const shared = { snapshots, copying, leases, clock, processId }
  const sweeper = fleet.forEachRegistered((member) =>
    startLoop(
      'sweep snapshots',
      async (signal) => {
        const node = { id: idOf(member), sandboxes: member.sandboxes }
        return paceOf(await sweepSnapshots({ ...shared, node }, signal), fleet.size())
      },
      log,
    ),
  )
  return {
    snapshots: createSnapshots({ snapshots, templates, teams, copying, clock }),
    fork: createForkSandbox({
      ...{ copying, launching, templates, limitsOf, placing, log },
    }),
    close: () => sweeper.close(),
  }
}
