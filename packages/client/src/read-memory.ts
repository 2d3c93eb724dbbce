/** Memory for one connection to read into. All of it stays as it is until nobody needs it, if that ever comes. */
export interface ReadMemory {
  /** Where the next bytes are to be read to; never empty. */
  room(): Buffer
  /** The bytes, after so many were read to there. */
  take(length: number): Buffer
  /** For what comes in parts: so many bytes to put it together in, before others are asked for. */
  apart(length: number): Buffer
}

/**
 * Large blocks are taken from the system only where much is read: a read each would cost as much as the reading. Where
 * `isFree` tells that nobody needs what was read before, that memory is read into again.
 */
export function createReadMemory(isFree?: () => boolean): ReadMemory {
  const parts = createParts()
  let block: Buffer | undefined
  let other: Buffer | undefined
  let used = 0
  return {
    room: () => block?.subarray(used) ?? sharedBuffer,
    take(length) {
      const isOtherFree = isFree?.() ?? false
      if (isOtherFree) parts.free()
      const from = block?.subarray(used, used + length) ?? sharedBuffer.subarray(0, length)
      if (!block || length < manyBytes) {
        if (length >= manyBytes) renew()
        return Buffer.from(from) // a little must not keep a whole block
      }
      used += length
      if (isOtherFree) exchange()
      else if (block.length - used < leastRoomBytes) renew()
      return from
    },
    apart: isFree ? parts.give : Buffer.allocUnsafeSlow,
  }

  function renew(): void {
    block = Buffer.allocUnsafeSlow(blockBytes)
    used = 0
  }

  /** What was just read is needed, what is in the other block is not. */
  function exchange(): void {
    const last = block
    if (other) {
      block = other
      used = 0
    } else renew()
    other = last
  }
}

/** Of all connections: what is read is copied before anybody else reads. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** So much at once, and more will come. */
const manyBytes = 16 * 1024

const blockBytes = 256 * 1024
const leastRoomBytes = 64 * 1024

interface Parts {
  give(length: number): Buffer
  /** All but the last, which may still be filled, can be given again. */
  free(): void
}

function createParts(): Parts {
  let given: Buffer[] = []
  let spare: Buffer[] = []
  return {
    give(length) {
      const known = spare.pop()
      const part = known && known.length >= length ? known : Buffer.allocUnsafeSlow(length)
      given.push(part)
      return part.subarray(0, length)
    },
    free() {
      const unused = given.slice(0, -1).filter(({ length }) => length <= sparePartBytes)
      spare = [...spare, ...unused].slice(-sparePartLimit)
      given = given.slice(-1)
    },
  }
}

/** Few messages are larger, and few are not whole. */
const sparePartBytes = 64 * 1024
const sparePartLimit = 16
