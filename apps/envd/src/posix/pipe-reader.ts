import { Socket } from 'node:net'

/** Reads the output of a program from a pipe. */
export interface PipeReader {
  /**
   * Reads on demand. A chunk is valid until the next is requested, because buffers are reused. Ends when the pipe
   * closes.
   */
  readonly chunks: AsyncIterable<Uint8Array>
  destroy(): void
}

/**
 * Takes over the descriptor. Reuses buffers, because allocating one per read, as streams do, costs more than the
 * read. Never pauses while the consumer keeps up: under gVisor each pause and resume costs two more system calls.
 */
export function readPipe(fd: number): PipeReader {
  const buffers = createReadBuffers()
  let unread: Buffer | undefined
  let requested: PromiseWithResolvers<void> | undefined
  let hasEnded = false
  const socket = new Socket({
    fd,
    writable: false,
    onread: {
      buffer: buffers.nextBuffer,
      callback(length) {
        unread = buffers.take(length)
        const isRequested = requested !== undefined
        wake()
        return isRequested
      },
    },
  })
  const end = () => {
    hasEnded = true
    wake()
  }
  socket.once('end', end)
  socket.once('close', end)
  socket.on('error', () => {}) // 'close' follows

  return { chunks: chunks(), destroy: () => void socket.destroy() }

  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (!unread && !hasEnded) {
        requested = Promise.withResolvers()
        socket.resume()
        await requested.promise
      }
      const chunk = unread
      if (!chunk) return
      unread = undefined
      yield chunk
    }
  }

  function wake(): void {
    requested?.resolve()
    requested = undefined
  }
}

interface ReadBuffers {
  nextBuffer(): Buffer
  /** Returns the bytes read. They stay valid during the next read, until the buffer after it is requested. */
  take(length: number): Buffer
}

/** Alternates two buffers: one is filled while the consumer uses the other. */
function createReadBuffers(): ReadBuffers {
  const ownBuffers: Buffer[] = []
  let reading: Buffer = sharedBuffer
  return {
    nextBuffer: () => reading,
    take(length) {
      const chunk = reading.subarray(0, length)
      const kept = reading === sharedBuffer ? Buffer.from(chunk) : chunk
      reading = length < busyPipeBytes ? sharedBuffer : another(reading)
      return kept
    },
  }

  function another(last: Buffer): Buffer {
    if (ownBuffers.length < 2) ownBuffers.push(Buffer.allocUnsafeSlow(ownBufferBytes))
    return ownBuffers.find((buffer) => buffer !== last) ?? last
  }
}

/** Shared by all pipes with little output; its content is copied out before the next read. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** A read of this size means that more output will follow. */
const busyPipeBytes = 16 * 1024

/** Pipe size that the guest program sets for stdout. */
const ownBufferBytes = 512 * 1024
