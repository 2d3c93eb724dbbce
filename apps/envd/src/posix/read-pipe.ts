import { Socket } from 'node:net'

/** What a program writes to a pipe. */
export interface PipeReader {
  /** Reads only when asked for more. A piece is good until then: its memory is used again. Ends with the pipe. */
  readonly pieces: AsyncIterable<Uint8Array>
  destroy(): void
}

/**
 * Takes over the descriptor. Fresh memory for each read, as streams take it, would cost more than the reading. As long as
 * whoever reads keeps up, the pipe is never told to stop: under gVisor each stop and start is two calls more.
 */
export function readPipe(fd: number): PipeReader {
  const memory = createPipeMemory()
  let waiting: Buffer | undefined
  let asked: PromiseWithResolvers<void> | undefined
  let isOver = false
  const socket = new Socket({
    fd,
    writable: false,
    onread: {
      buffer: memory.room,
      callback(length) {
        waiting = memory.take(length)
        const isAsked = asked !== undefined
        wake()
        return isAsked
      },
    },
  })
  const end = () => {
    isOver = true
    wake()
  }
  socket.once('end', end)
  socket.once('close', end)
  socket.on('error', () => {}) // its close says the same

  return { pieces: pieces(), destroy: () => void socket.destroy() }

  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (!waiting && !isOver) {
        asked = Promise.withResolvers()
        socket.resume()
        await asked.promise
      }
      const piece = waiting
      if (!piece) return
      waiting = undefined
      yield piece
    }
  }

  function wake(): void {
    asked?.resolve()
    asked = undefined
  }
}

interface PipeMemory {
  room(): Buffer
  /** What was read. Stays as it is while the next is read, and until there is room asked for after that. */
  take(length: number): Buffer
}

/** Two buffers in turn, since one is read into while somebody looks at the other. */
function createPipeMemory(): PipeMemory {
  const own: Buffer[] = []
  let reading: Buffer = sharedBuffer
  return {
    room: () => reading,
    take(length) {
      const piece = reading.subarray(0, length)
      const kept = reading === sharedBuffer ? Buffer.from(piece) : piece
      reading = length < manyBytes ? sharedBuffer : another(reading)
      return kept
    },
  }

  function another(last: Buffer): Buffer {
    if (own.length < 2) own.push(Buffer.allocUnsafeSlow(ownBytes))
    return own.find((buffer) => buffer !== last) ?? last
  }
}

/** For all pipes on which little comes. What is read is copied before anybody else reads. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** So much at once, and more will come. */
const manyBytes = 16 * 1024

/** As much as the helper program makes the pipe of an output hold. */
const ownBytes = 512 * 1024
