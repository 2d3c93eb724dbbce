/**
 * The pieces of a body, from where they are read to where they are used, in memory that is used again: fresh memory for
 * each read costs more than the reading. While one piece is used, the next is read.
 */
export interface BodyPieces {
  /** What was read of the body before. */
  begin(pieces: readonly Buffer[]): void
  /** Where the next bytes are to be read to; never empty. */
  room(): Buffer
  /** So many were read to there. Answers whether there is room for more; `onRoom` tells when there is again. */
  add(length: number): boolean
  /** A piece is good until the next is asked for. */
  next(): Promise<IteratorResult<Buffer, undefined>>
  /** All that is still to come is read for nothing, and whoever asks for a piece is told `why`. */
  discard(why: Error): void
}

export function createBodyPieces({ length, onRoom, onWhole }: BodyParts): BodyPieces {
  const memory = Array.from({ length: 3 }, borrow)
  /** Filled, and not asked for yet: seldom more than one, since reading stops then. */
  const ready: Buffer[] = []
  let current = turn()
  let start = 0
  let end = 0
  let left = length
  let why: Error | undefined
  let waiting: PromiseWithResolvers<IteratorResult<Buffer, undefined>> | undefined

  return {
    begin: (pieces) => void ready.push(...pieces),
    room: () => (left === 0 || why ? nowhere : current.subarray(end, end + left)),

    add(count) {
      if (left === 0) return true // what follows the body is nobody's
      left -= count
      if (!why) keep(count)
      if (left === 0) onWhole()
      return left === 0 || ready.length === 0
    },

    next() {
      if (why) return Promise.reject(why)
      const piece = ready.shift() ?? cut()
      if (piece) {
        if (ready.length === 0) onRoom()
        return Promise.resolve({ done: false, value: piece })
      }
      if (left === 0) {
        give(memory)
        return Promise.resolve({ done: true, value: undefined })
      }
      waiting = Promise.withResolvers()
      return waiting.promise
    },

    discard(reason) {
      why ??= reason
      ready.length = 0
      waiting?.reject(why)
      waiting = undefined
      onRoom()
    },
  }

  function keep(count: number): void {
    end += count
    if (!waiting && end < current.length && left > 0) return
    const piece = current.subarray(start, end)
    // One may be in use, one filled, one being filled. A socket can be made to read by others than us, and gets memory then.
    current = ready.length === 0 ? turn() : Buffer.allocUnsafeSlow(sizeBytes)
    start = end = 0
    if (waiting) waiting.resolve({ done: false, value: piece })
    else ready.push(piece)
    waiting = undefined
  }

  function cut(): Buffer | undefined {
    if (start === end) return undefined
    const piece = current.subarray(start, end)
    start = end
    return piece
  }

  function turn(): Buffer {
    const buffer = memory.shift() ?? borrow()
    memory.push(buffer)
    return buffer
  }
}

export interface BodyParts {
  /** How many bytes are still to be read. */
  readonly length: number
  readonly onRoom: () => void
  /** The last byte was read, though not used yet. */
  readonly onWhole: () => void
}

const sizeBytes = 256 * 1024
const nowhere = Buffer.allocUnsafeSlow(64 * 1024)
const spare: Buffer[] = []
const spareLimit = 12

function borrow(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(sizeBytes)
}

/** Only what nobody reads from or writes to any more. */
function give(buffers: Buffer[]): void {
  for (const buffer of buffers.splice(0)) if (spare.length < spareLimit) spare.push(buffer)
}
