/**
 * Passes the pieces of a body from reader to consumer in reused buffers, since fresh memory for each read costs more
 * than the read. While the consumer uses one piece, the next is read.
 */
export interface BodyPieces {
  /** Adds bytes of the body that were already read. */
  addInitial(pieces: readonly Buffer[]): void
  /** Buffer for the next read; never empty. */
  readBuffer(): Buffer
  /**
   * Call after a read of `length` bytes. Returns whether to keep reading; otherwise `onReadable` says when to resume.
   */
  add(length: number): boolean
  /** A piece is valid until the next call. */
  next(): Promise<IteratorResult<Buffer, undefined>>
  /** Ignores the rest of the body. `next` rejects with `discardReason`. */
  discard(discardReason: Error): void
}

export function createBodyPieces({
  length,
  onReadable,
  onComplete,
}: BodyPiecesOptions): BodyPieces {
  const buffers = Array.from({ length: 3 }, acquireBuffer)
  /** Filled but not requested yet. Seldom more than one, because reading stops then. */
  const ready: Buffer[] = []
  let current = rotate()
  let start = 0
  let end = 0
  let left = length
  let discardReason: Error | undefined
  let waiting: PromiseWithResolvers<IteratorResult<Buffer, undefined>> | undefined

  return {
    addInitial: (pieces) => void ready.push(...pieces),
    readBuffer: () =>
      left === 0 || discardReason ? discardBuffer : current.subarray(end, end + left),

    add(count) {
      if (left === 0) return true // ignore bytes after the body
      left -= count
      if (!discardReason) append(count)
      if (left === 0) onComplete()
      return left === 0 || ready.length === 0
    },

    next() {
      if (discardReason) return Promise.reject(discardReason)
      const piece = ready.shift() ?? takeUnread()
      if (piece) {
        if (ready.length === 0) onReadable()
        return Promise.resolve({ done: false, value: piece })
      }
      if (left === 0) {
        releaseBuffers(buffers)
        return Promise.resolve({ done: true, value: undefined })
      }
      waiting = Promise.withResolvers()
      return waiting.promise
    },

    discard(reason) {
      discardReason ??= reason
      ready.length = 0
      waiting?.reject(discardReason)
      waiting = undefined
      onReadable()
    },
  }

  function append(count: number): void {
    end += count
    if (!waiting && end < current.length && left > 0) return
    const piece = current.subarray(start, end)
    // One buffer may be in use, one filled and one being filled. Other code can make the socket read nevertheless; such
    // a read gets a fresh buffer.
    current = ready.length === 0 ? rotate() : Buffer.allocUnsafeSlow(bufferBytes)
    start = end = 0
    if (waiting) waiting.resolve({ done: false, value: piece })
    else ready.push(piece)
    waiting = undefined
  }

  function takeUnread(): Buffer | undefined {
    if (start === end) return undefined
    const piece = current.subarray(start, end)
    start = end
    return piece
  }

  function rotate(): Buffer {
    const buffer = buffers.shift() ?? acquireBuffer()
    buffers.push(buffer)
    return buffer
  }
}

export interface BodyPiecesOptions {
  /** Bytes left to read. */
  readonly length: number
  readonly onReadable: () => void
  /** Called when the last byte was read, even if the consumer has not taken it yet. */
  readonly onComplete: () => void
}

const bufferBytes = 256 * 1024
const discardBuffer = Buffer.allocUnsafeSlow(64 * 1024)
const freeBuffers: Buffer[] = []
const maxFreeBuffers = 12

function acquireBuffer(): Buffer {
  return freeBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
}

/** Call only for buffers that are no longer read from or written to. */
function releaseBuffers(buffers: Buffer[]): void {
  for (const buffer of buffers.splice(0))
    if (freeBuffers.length < maxFreeBuffers) freeBuffers.push(buffer)
}
