/**
 * Memory to read into. Fresh memory for each read costs more than the reading. One buffer serves all connections on which
 * little comes: a read and what follows at once is over before the next. Who has much to read borrows one for that time.
 */
export const sharedBuffer = Buffer.allocUnsafeSlow(64 * 1024)

const spare: Buffer[] = []
const spareLimit = 16

export function borrowBuffer(): Buffer {
  return spare.pop() ?? Buffer.allocUnsafeSlow(256 * 1024)
}

/** Only what nobody reads from or writes to any more. */
export function returnBuffer(buffer: Buffer): void {
  if (spare.length < spareLimit) spare.push(buffer)
}
