/** Connect's framing, for tests at the level of bytes. */

export interface Envelope {
  readonly flags: number
  readonly text: string
}

export function envelope(message: unknown, flags = 0): Buffer<ArrayBuffer> {
  const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt8(flags)
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}

export function parseEnvelopes(bytes: Buffer): Envelope[] {
  const envelopes: Envelope[] = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    if (end > bytes.length) throw new Error('the last envelope is cut short')
    envelopes.push({ flags: bytes.readUInt8(at), text: bytes.toString('utf8', at + 5, end) })
    at = end
  }
  return envelopes
}
