/** Read buffers of one connection. Their content stays unchanged while a caller needs it. */
export interface ReadBuffers {
  /** Buffer for the next read; never empty. */
  readBuffer(): Buffer
  /** Call after a read of `length` bytes. Returns these bytes. */
  commit(length: number): Buffer
  /** Allocates a buffer for an incomplete message. Its content must be complete before the next call. */
  allocate(length: number): Buffer
}

/**
 * Allocates large blocks only for large reads, because a block per read costs as much as the read. If `isFree` reports
 * that earlier bytes are no longer needed, their block is reused.
 */
export function createReadBuffers(isFree?: () => boolean): ReadBuffers {
  const parts = createPartAllocator()
  let block: Buffer | undefined
  let other: Buffer | undefined
  let used = 0
  return {
    readBuffer: () => block?.subarray(used) ?? sharedBuffer,
    commit(length) {
      const canReuse = isFree?.() ?? false
      if (canReuse) parts.free()
      const from = block?.subarray(used, used + length) ?? sharedBuffer.subarray(0, length)
      if (!block || length < largeReadBytes) {
        if (length >= largeReadBytes) allocateBlock()
        return Buffer.from(from) // a small read must not keep a whole block alive
      }
      used += length
      if (canReuse) swapBlocks()
      else if (block.length - used < minBufferBytes) allocateBlock()
      return from
    },
    allocate: isFree ? parts.allocate : Buffer.allocUnsafeSlow,
  }

  function allocateBlock(): void {
    block = Buffer.allocUnsafeSlow(blockBytes)
    used = 0
  }

  /** Makes the other block current; the bytes just read stay in the old one. */
  function swapBlocks(): void {
    const last = block
    if (other) {
      block = other
      used = 0
    } else allocateBlock()
    other = last
  }
}

/** Shared by all connections, since small reads are copied out of it at once. */
const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** A read this large suggests that more will follow. */
const largeReadBytes = 16 * 1024

const blockBytes = 256 * 1024
const minBufferBytes = 64 * 1024

interface PartAllocator {
  allocate(length: number): Buffer
  /** Makes all buffers reusable but the last, which may still be incomplete. */
  free(): void
}

function createPartAllocator(): PartAllocator {
  let inUse: Buffer[] = []
  let spare: Buffer[] = []
  return {
    allocate(length) {
      const known = spare.pop()
      const part = known && known.length >= length ? known : Buffer.allocUnsafeSlow(length)
      inUse.push(part)
      return part.subarray(0, length)
    },
    free() {
      const unused = inUse.slice(0, -1).filter(({ length }) => length <= sparePartBytes)
      spare = [...spare, ...unused].slice(-sparePartLimit)
      inUse = inUse.slice(-1)
    },
  }
}

/** Few messages are larger, and few are split. */
const sparePartBytes = 64 * 1024
const sparePartLimit = 16
