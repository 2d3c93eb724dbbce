import { Socket } from 'node:net'

/** What a program writes to a pipe. */
export interface PipeReader {
  /** Reads only when asked for more. A piece is good until then: its memory is used again. Ends with the pipe. */
  readonly pieces: AsyncIterable<Uint8Array>
  destroy(): void
}

/** Takes over the descriptor. Fresh memory for each read, as streams take it, would cost more than the reading. */
export function readPipe(fd: number): PipeReader {
  const arrived: Buffer[] = []
  const ownBuffers: Buffer[] = []
  let reading: Buffer = sharedBuffer
  let wake = () => {}
  let isOver = false
  const socket = new Socket({
    fd,
    writable: false,
    onread: {
      buffer: () => reading,
      callback(length) {
        const piece = reading.subarray(0, length)
        arrived.push(reading === sharedBuffer ? Buffer.from(piece) : piece)
        reading = length < manyBytes ? sharedBuffer : anotherBuffer()
        wake()
        return false
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
      if (arrived.length === 0 && !isOver) {
        const waiting = Promise.withResolvers<void>()
        wake = waiting.resolve
        socket.resume()
        await waiting.promise
      }
      const piece = arrived.shift()
      if (!piece) return
      yield piece
    }
  }

  /** One that holds no piece which somebody may still look at: neither one that waits, nor the one given out last. */
  function anotherBuffer(): Buffer {
    const free = ownBuffers.find(
      (buffer) => buffer !== reading && arrived.every((piece) => piece.buffer !== buffer.buffer),
    )
    if (free) return free
    if (ownBuffers.length === 2) return sharedBuffer
    const made = Buffer.allocUnsafeSlow(ownBytes)
    ownBuffers.push(made)
    return made
  }
}

/** For all pipes on which little comes. What is read is copied before anybody else reads. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** So much at once, and more will come. */
const manyBytes = 16 * 1024

/** As much as the helper program makes a pipe hold. */
const ownBytes = 256 * 1024
