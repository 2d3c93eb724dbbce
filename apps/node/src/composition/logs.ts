import { join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import { createSandboxLogs } from '../app/logs/collect-logs.ts'
import type { SandboxLogs } from '../app/logs/collect-logs.ts'
import type { SandboxEvents } from '../app/lifecycle/events.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { StoredLogs } from '../domain/sandboxes/log.ts'
import { readEnvdLogs } from '../envd/read-logs.ts'
import { createLogFiles } from '../state/logs.ts'

/** Polling interval. envd buffers at least as many entries as a sandbox can write in this time. */
const intervalMs = 1_000
const fetchTimeoutMs = 2_000
const sweepIntervalMs = 60_000

/** Starts collecting the logs of sandboxes. */
export function startLogs(parts: {
  readonly dataDir: string
  readonly sandboxes: Pick<Sandboxes, 'running' | 'get' | 'isPausing' | 'quarantined'>
  readonly events: SandboxEvents
  /** Logs in the object store, if there is one. */
  readonly stored: Pick<StoredLogs, 'read'> | undefined
  isAsleep(cellId: string): boolean
  readonly log: Logger
}): { readonly logs: SandboxLogs; close(): Promise<void> } {
  const { sandboxes, log } = parts
  const onError = (err: unknown) =>
    log.warn(
      { err, event: 'node.logs' },
      'a sandbox log could not be fetched or stored; the next pass tries again',
    )
  const awake = () =>
    sandboxes.running().filter(({ record }) => !sandboxes.isPausing(record.owner.sandboxId))
  const logs = createSandboxLogs({
    files: createLogFiles(join(parts.dataDir, 'sandbox-logs')),
    stored: parts.stored,
    running: () =>
      // Skip sandboxes that are being paused: a half-open connection prevents the checkpoint.
      awake().map(({ record, slot }) => ({
        sandboxId: record.owner.sandboxId,
        address: slot.sandboxAddress,
        initToken: record.initToken,
        isAsleep: parts.isAsleep(record.cellId),
      })),
    addressOf(sandboxId) {
      const found = sandboxes.get(sandboxId)
      return found && 'slot' in found ? found.slot.sandboxAddress : undefined
    },
    isHere: (sandboxId) =>
      sandboxes.get(sandboxId) !== undefined || sandboxes.quarantined().includes(sandboxId),
    fetch: (source, afterMs) =>
      readEnvdLogs(source, afterMs, { timeoutMs: fetchTimeoutMs, nowMs: Date.now() }),
    nowMs: Date.now,
    onError,
  })
  const stopCollecting = repeat(intervalMs, logs.collect, onError)
  const stopSweeping = repeat(sweepIntervalMs, logs.sweep, onError)
  const closing = new AbortController()
  const following = followEnds(parts.events.watch(closing.signal), logs)
  return {
    logs,
    async close() {
      await Promise.all([stopCollecting(), stopSweeping()])
      closing.abort()
      await following
    },
  }
}

async function followEnds(
  events: ReturnType<SandboxEvents['watch']>,
  logs: SandboxLogs,
): Promise<void> {
  for await (const event of events) {
    if (event.kind !== 'ended') continue
    if (event.isElsewhere) logs.forget(event.sandboxId)
    else await logs.ended(event.sandboxId, event.reason)
  }
}

/** Wraps `sandboxes` so that the last log entries are fetched before a sandbox is killed or paused. */
export function withLastEntries(sandboxes: Sandboxes, logs: SandboxLogs): Sandboxes {
  return {
    ...sandboxes,
    async kill(sandboxId, options) {
      await logs.catchUp(sandboxId)
      await sandboxes.kill(sandboxId, options)
    },
    async pause(sandboxId, options) {
      await logs.catchUp(sandboxId)
      return sandboxes.pause(sandboxId, options)
    },
  }
}
