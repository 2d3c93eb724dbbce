import type { Logger } from '@atoll/kit/log'
import type { SandboxEvents } from '../../app/lifecycle/events.ts'
import type { Sandboxes } from '../../app/lifecycle/sandboxes.ts'
import type { SandboxLogs } from '../../app/logs/collect-logs.ts'
import { createLogUploads } from '../../app/objects/log-uploads.ts'
import { startPassLoop } from '../../app/objects/pass-loop.ts'
import type { PassLoop } from '../../app/objects/pass-loop.ts'
import { createUploadPasses } from '../../app/objects/upload-passes.ts'
import type { NodeObjects } from './open-objects.ts'

/**
 * Uploads the logs of sandboxes that ended or were paused. Apart from the other uploads: a log is small, and must neither
 * wait for gigabytes of memory nor hold them up.
 */
export function startLogUploads(parts: {
  readonly objects: Pick<NodeObjects, 'logs' | 'logNotes' | 'isWorking'>
  readonly logs: SandboxLogs
  readonly sandboxes: Pick<Sandboxes, 'get'>
  readonly events: SandboxEvents
  readonly log: Logger
}): Pick<PassLoop, 'close'> {
  const { objects, logs, sandboxes, log } = parts
  const uploads = createLogUploads({
    ...{ logs, notes: objects.logNotes, stored: objects.logs },
    stateOf(sandboxId) {
      const found = sandboxes.get(sandboxId)
      if (!found) return undefined
      return 'slot' in found ? 'running' : 'paused'
    },
    nowMs: Date.now,
  })
  const passes = createUploadPasses({
    chores: () => [],
    findUploads: uploads.findUploads,
    isStoreWorking: objects.isWorking,
    nowMs: () => performance.now(),
    onError: (err, name) =>
      log.warn(
        { err, event: 'node.objects', name },
        'a sandbox log was not uploaded; a later pass tries again',
      ),
  })
  const loop = startPassLoop(passes, { waitsOut: true })
  const note = (sandboxId: string) => {
    uploads.note(sandboxId)
    loop.nudge()
  }
  logs.onEnded(note)
  const closing = new AbortController()
  const following = followPauses(parts.events.watch(closing.signal), note)
  return {
    async close() {
      closing.abort()
      await Promise.all([following, loop.close()])
    },
  }
}

async function followPauses(
  events: ReturnType<SandboxEvents['watch']>,
  note: (sandboxId: string) => void,
): Promise<void> {
  for await (const event of events) if (event.kind === 'paused') note(event.sandboxId)
}
