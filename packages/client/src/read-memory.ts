/** Memory for one connection to read into. What was read stays good for as long as somebody keeps it. */
export interface ReadMemory {
  /** Where the next bytes are to be read to; never empty. */
  room(): Buffer
  /** The bytes, after so many were read to there. */
  take(length: number): Buffer
}

/** Large blocks are taken from the system only where much is read: a read each would cost as much as the reading. */
export function createReadMemory(): ReadMemory {
  let block: Buffer | undefined
  let used = 0
  return {
    room: () => block?.subarray(used) ?? sharedBuffer,
    take(length) {
      const from = block?.subarray(used, used + length) ?? sharedBuffer.subarray(0, length)
      if (!block || length < manyBytes) {
        if (length >= manyBytes) renew()
        return Buffer.from(from) // a little must not keep a whole block
      }
      used += length
      if (block.length - used < leastRoomBytes) renew()
      return from
    },
  }

  function renew(): void {
    block = Buffer.allocUnsafeSlow(blockBytes)
    used = 0
  }
}

/** Of all connections: what is read is copied before anybody else reads. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** So much at once, and more will come. */
const manyBytes = 16 * 1024

const blockBytes = 256 * 1024
const leastRoomBytes = 64 * 1024
