import { forgetLogs } from '../app/logs/forget-logs.ts'
import { createLogs } from '../app/logs/logs.ts'
import type { Logs } from '../app/logs/logs.ts'
import { startLoop } from '../app/loop.ts'
import { connectLogs } from '../nodes/connect-logs.ts'
import type { Core } from './core.ts'

/** Sandbox logs, which the node stores. */
export interface LogParts {
  readonly logs: Logs
  /** Starts to delete old logs. */
  startDeletion(): { close(): Promise<void> }
}

export function createLogParts({ stores, transport, clock, log }: Core): LogParts {
  const node = connectLogs(transport)
  return {
    logs: createLogs({ store: stores.sandboxes, node, clock }),
    startDeletion: () =>
      startLoop(
        'forget logs',
        (signal) => forgetLogs({ node, owners: stores.logOwners }, signal),
        log,
      ),
  }
}
