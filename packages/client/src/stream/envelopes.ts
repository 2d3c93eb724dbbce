/**
 * Splits a Connect stream into envelopes: one byte of flags, four bytes of length, then the data. Does not copy an
 * envelope that lies within one piece.
 *
 * Threats: the server controls the lengths. Envelopes beyond the limit are rejected, and at most one is buffered.
 */
import { Code, ConnectError } from '@connectrpc/connect'
import type { ReadBuffers } from './read-buffers.ts'

export interface Envelope {
  readonly flags: number
  readonly data: Buffer
}

export interface EnvelopeReader {
  /** Returns the envelopes that this piece completes. Throws if one is too large. */
  read(piece: Buffer): Envelope[]
}

export function createEnvelopeReader(
  limitBytes: number,
  memory: Pick<ReadBuffers, 'allocate'>,
): EnvelopeReader {
  /** Buffer for an incomplete envelope: its header, or the whole envelope once its length is known. */
  let room: Buffer = Buffer.alloc(headBytes)
  let filled = 0
  return { read }

  function read(piece: Buffer): Envelope[] {
    const found: Envelope[] = []
    for (let at = 0; at < piece.length;) {
      const end = filled === 0 ? endAt(piece, at) : Infinity
      if (end <= piece.length) {
        found.push(envelopeIn(piece.subarray(at, end)))
        at = end
      } else {
        at += keep(piece.subarray(at))
        if (filled === room.length) found.push(envelopeIn(room))
        if (filled === room.length) restart()
      }
    }
    return found
  }

  /** Copies as much as fits and returns the number of bytes copied. */
  function keep(piece: Buffer): number {
    const count = piece.copy(room, filled)
    filled += count
    if (filled < headBytes || room.length > headBytes) return count
    const head = room
    room = memory.allocate(endAt(head, 0))
    head.copy(room)
    return count
  }

  function restart(): void {
    room = Buffer.alloc(headBytes)
    filled = 0
  }

  /** Offset of the end of the envelope that starts at `at`; infinite if its header is incomplete. */
  function endAt(bytes: Buffer, at: number): number {
    if (bytes.length - at < headBytes) return Infinity
    const length = bytes.readUInt32BE(at + 1)
    if (length > limitBytes) {
      const message = `Message too large: ${length} bytes, limit ${limitBytes}`
      throw new ConnectError(message, Code.ResourceExhausted)
    }
    return at + headBytes + length
  }
}

const headBytes = 5

function envelopeIn(bytes: Buffer): Envelope {
  return { flags: bytes.readUInt8(), data: bytes.subarray(headBytes) }
}
