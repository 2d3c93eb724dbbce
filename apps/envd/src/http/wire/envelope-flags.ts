import { Code, ConnectError } from '@connectrpc/connect'

/** The same bytes, as long as no envelope among them has a flag that means nothing: the library overlooks those. */
export async function* withKnownFlags(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const head = Buffer.alloc(headBytes)
  let filled = 0
  let left = 0
  for await (const piece of body) {
    for (let at = 0; at < piece.length;) {
      if (left > 0) {
        const skipped = Math.min(left, piece.length - at)
        left -= skipped
        at += skipped
        continue
      }
      const part = piece.subarray(at, at + headBytes - filled)
      head.set(part, filled)
      filled += part.length
      at += part.length
      if (filled < headBytes) continue
      if ((head.readUInt8(0) & ~knownFlags) !== 0) {
        throw new ConnectError('A message has an unknown flag', Code.InvalidArgument)
      }
      left = head.readUInt32BE(1)
      filled = 0
    }
    yield piece
  }
}

/** Flags and length. */
const headBytes = 5

/** Compressed, and the end of a stream. */
const knownFlags = 0b11
