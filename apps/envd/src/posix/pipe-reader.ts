import { Socket } from 'node:net'

/** What a program writes to a pipe. */
export interface PipeReader {
  /** Reads only when asked for more. A piece is good until then: its memory is used again. Ends with the pipe. */
  readonly chunks: AsyncIterable<Uint8Array>
  destroy(): void
}

/**
 * Takes over the descriptor. Fresh memory for each read, as streams take it, would cost more than the reading. As long as
 * whoever reads keeps up, the pipe is never told to stop: under gVisor each stop and start is two calls more.
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
  socket.on('error', () => {}) // its close says the same

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
  /** What was read. Stays as it is while the next is read, and until there is room asked for after that. */
  take(length: number): Buffer
}

/** Two buffers in turn, since one is read into while somebody looks at the other. */
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

/** For all pipes on which little comes. What is read is copied before anybody else reads. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** So much at once, and more will come. */
const busyPipeBytes = 16 * 1024

/** As much as the helper program makes the pipe of an output hold. */
const ownBufferBytes = 512 * 1024
