import { Fault } from '@atoll/kit/fault'

/** Forwards input to a terminal in order, one request at a time. */
export interface TerminalInput {
  /** Throws if the page sent more than its credit. */
  push(bytes: Buffer): void
}

/** The page keeps less than half of this under way. */
const maxQueuedBytes = 256 * 1024

export function createTerminalInput(parts: {
  forward(bytes: Uint8Array): Promise<unknown>
  /** Gives the page credit for as many bytes more. */
  onTaken(bytes: number): void
  onFailure(error: unknown): void
}): TerminalInput {
  let queued: Buffer[] = []
  let queuedBytes = 0
  let isSending = false
  const sendQueued = async () => {
    if (isSending) return
    isSending = true
    try {
      while (queued.length > 0) {
        const value = Buffer.concat(queued)
        queued = []
        await parts.forward(value)
        queuedBytes -= value.length
        parts.onTaken(value.length)
      }
    } catch (error) {
      parts.onFailure(error)
    } finally {
      isSending = false
    }
  }
  return {
    push(bytes) {
      if (queuedBytes + bytes.length > maxQueuedBytes) {
        const message = `More than ${maxQueuedBytes / 1024} KiB of input wait for the terminal`
        throw new Fault('exhausted', 'terminal_input', message)
      }
      queued.push(bytes)
      queuedBytes += bytes.length
      void sendQueued()
    },
  }
}
