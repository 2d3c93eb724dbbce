/**
 * Reused read buffers: allocating memory for each read costs more than the read. Connections with little data share one
 * buffer, because each read is handled before the next one. A connection with much data borrows a buffer of its own.
 */
export const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

const freeBuffers: Buffer[] = []
const maxFreeBuffers = 16

export function borrowBuffer(): Buffer {
  return freeBuffers.pop() ?? Buffer.allocUnsafeSlow(256 * 1024)
}

/** The buffer must no longer be in use. */
export function returnBuffer(buffer: Buffer): void {
  if (freeBuffers.length < maxFreeBuffers) freeBuffers.push(buffer)
}
