import { logKeptMs } from '../../domain/sandboxes/log.ts'
import type { LogNotes, StoredLogs } from '../../domain/sandboxes/log.ts'
import type { SandboxLogs } from '../logs/collect-logs.ts'
import type { StoreTask } from './upload-passes.ts'

/** Uploads of the logs of sandboxes that ended or were paused. Logs of running sandboxes change all the time. */
export interface LogUploads {
  /** The sandbox ended or was paused. */
  note(sandboxId: string): void
  findUploads(signal: AbortSignal): Promise<readonly StoreTask[]>
}

export interface LogUploadPorts {
  readonly logs: Pick<SandboxLogs, 'list' | 'export'>
  readonly notes: LogNotes
  readonly stored: Pick<StoredLogs, 'upload' | 'remove'>
  /** Undefined: the sandbox is not on this node. */
  stateOf(sandboxId: string): 'running' | 'paused' | undefined
  nowMs(): number
}

const lookIntervalMs = 60 * 60 * 1000

/**
 * Looks at all logs at first, since the last process may have left some, and from then on at the logs that `note` names. So a
 * pass costs nothing for logs that were uploaded before.
 */
export function createLogUploads(ports: LogUploadPorts): LogUploads {
  const { logs, notes, stored, stateOf, nowMs } = ports
  const waiting = new Set<string>()
  let lookedAtMs: number | undefined

  async function lookAtAll(): Promise<void> {
    const kept = await logs.list()
    await notes.keepOnly(new Set(kept.map(({ sandboxId }) => sandboxId)))
    for (const { sandboxId, writtenAtMs } of kept) {
      const isOld = nowMs() - writtenAtMs > logKeptMs
      const isUploaded = notes.find(sandboxId)?.writtenAtMs === Math.floor(writtenAtMs)
      if (!isOld && !isUploaded) waiting.add(sandboxId)
    }
    lookedAtMs = nowMs()
  }

  async function upload(sandboxId: string, signal: AbortSignal): Promise<void> {
    const log = await logs.export(sandboxId)
    const last = log?.entries.at(-1)
    if (!log || !last) return
    const earlier = notes.find(sandboxId)
    if (earlier?.writtenAtMs === log.writtenAtMs) return
    await stored.upload(log, signal)
    await notes.set(sandboxId, { writtenAtMs: log.writtenAtMs, lastAt: last.at })
    // The later upload has all of the earlier one.
    if (earlier && earlier.lastAt !== last.at) {
      await stored.remove(sandboxId, earlier.lastAt, signal)
    }
  }

  /** A sandbox that is noted again meanwhile waits again. */
  async function uploadNoted(sandboxId: string, signal: AbortSignal): Promise<void> {
    waiting.delete(sandboxId)
    if (stateOf(sandboxId) === 'running') return
    try {
      await upload(sandboxId, signal)
    } catch (error) {
      waiting.add(sandboxId)
      throw error
    }
  }

  return {
    note: (sandboxId) => void waiting.add(sandboxId),
    async findUploads(signal) {
      const isDue = lookedAtMs === undefined || nowMs() - lookedAtMs > lookIntervalMs
      if (isDue) await lookAtAll()
      // A paused sandbox may be about to leave this node.
      const paused = [...waiting].filter((sandboxId) => stateOf(sandboxId) === 'paused')
      return [...new Set([...paused, ...waiting])].map((sandboxId) => ({
        name: `logs/${sandboxId}`,
        run: () => uploadNoted(sandboxId, signal),
      }))
    },
  }
}
