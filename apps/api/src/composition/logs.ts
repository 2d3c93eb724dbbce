import { forgetLogs } from '../app/logs/forget-logs.ts'
import { createLogs } from '../app/logs/logs.ts'
import type { Logs } from '../app/logs/logs.ts'
import { idOf } from '../app/nodes/fleet.ts'
import { startVisits } from '../app/nodes/visits.ts'
import type { Core } from './core.ts'

/** Sandbox logs, which nodes and their object store keep. */
export interface LogParts {
  readonly logs: Logs
  /** Starts to delete old logs. */
  startDeletion(): { close(): Promise<void> }
}

export function createLogParts(core: Core): LogParts {
  const { stores, fleet, placing, liveApis, clock, log } = core
  return {
    logs: createLogs({
      ...{ store: stores.sandboxes, owners: stores.logOwners },
      ...{ fleet, placing, clock },
    }),
    startDeletion: () =>
      fleet.forEachRegistered((member) =>
        startVisits(
          'forget logs',
          (signal) => forgetLogs({ node: member.logs, owners: stores.logOwners }, signal),
          { fleet, log, isMine: () => liveApis.isMine(idOf(member)) },
        ),
      ),
  }
}
