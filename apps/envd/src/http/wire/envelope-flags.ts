import { Code, ConnectError } from '@connectrpc/connect'

/** Passes the body through, but throws at an envelope with unknown flags, which the library ignores. */
export async function* rejectUnknownFlags(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const header = Buffer.alloc(headerBytes)
  let filled = 0
  let bodyBytesLeft = 0
  for await (const chunk of body) {
    for (let at = 0; at < chunk.length;) {
      if (bodyBytesLeft > 0) {
        const skipped = Math.min(bodyBytesLeft, chunk.length - at)
        bodyBytesLeft -= skipped
        at += skipped
        continue
      }
      const part = chunk.subarray(at, at + headerBytes - filled)
      header.set(part, filled)
      filled += part.length
      at += part.length
      if (filled < headerBytes) continue
      if ((header.readUInt8(0) & ~knownFlags) !== 0) {
        throw new ConnectError('A message envelope has unknown flags', Code.InvalidArgument)
      }
      bodyBytesLeft = header.readUInt32BE(1)
      filled = 0
    }
    yield chunk
  }
}

/** Flags and message length. */
const headerBytes = 5

/** Flags for a compressed message and for the end of the stream. */
const knownFlags = 0b11
