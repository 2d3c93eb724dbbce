import type { ServerResponse } from 'node:http'
import { borrowBuffer, returnBuffer, sharedBuffer } from './read-buffers.ts'

export interface BufferedOutput {
  /** Returns the buffer for the next read. */
  readBuffer(): Buffer
  /** Replaces the buffer for the next read, and returns the previous one to the pool. */
  useBuffer(next: Buffer): void
  /**
   * Returns whether the kernel has taken everything. If not, the caller must stop reading until `resumeReading` is
   * called. `owner` is the read buffer that contains the data; it is replaced until then.
   */
  send(res: ServerResponse, data: readonly Buffer[], owner: Buffer | undefined): boolean
}

/** Sends data to the client straight from the read buffer, and reuses the buffer once the kernel has sent it. */
export function createBufferedOutput(resumeReading: () => void): BufferedOutput {
  let buffer: Buffer = sharedBuffer
  let unsent = 0

  return {
    readBuffer: () => buffer,

    useBuffer(next) {
      if (buffer !== sharedBuffer) returnBuffer(buffer)
      buffer = next
    },

    send(res, data, owner) {
      if (data.length === 0) return true
      let isHeld = false
      const onSent = (error?: Error | null) => {
        if (!isHeld) return
        unsent -= 1
        if (error) return
        if (owner) returnBuffer(owner)
        if (unsent === 0) resumeReading()
      }
      const { socket } = res
      socket?.cork()
      for (const [at, chunk] of data.entries()) {
        if (at === data.length - 1) res.write(chunk, onSent)
        else res.write(chunk)
      }
      socket?.uncork()
      if (res.writableLength === 0) return true
      isHeld = true
      unsent += 1
      if (owner) buffer = borrowBuffer()
      return false
    },
  }
}
