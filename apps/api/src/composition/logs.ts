import { forgetLogs } from '../app/logs/forget-logs.ts'
import { createLogs } from '../app/logs/logs.ts'
import type { Logs } from '../app/logs/logs.ts'
import { idOf } from '../app/nodes/fleet.ts'
import { startVisits } from '../app/nodes/visits.ts'
import type { Core } from './core.ts'

/** Sandbox logs, which the node stores. */
export interface LogParts {
  readonly logs: Logs
  /** Starts to delete old logs. */
  startDeletion(): { close(): Promise<void> }
}

export function createLogParts({ stores, fleet, liveApis, clock, log }: Core): LogParts {
  return {
    logs: createLogs({
      ...{ store: stores.sandboxes, owners: stores.logOwners },
      ...{ fleet, clock },
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
