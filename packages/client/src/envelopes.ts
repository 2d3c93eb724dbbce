/**
 * Finds the envelopes of a Connect stream (a byte of flags, four of length, so many bytes) in its pieces. One that lies in
 * a single piece is not copied.
 *
 * Threats: the lengths are whatever a server says. One beyond the limit is refused, and no more is kept than one envelope.
 */
import { Code, ConnectError } from '@connectrpc/connect'
import type { ReadMemory } from './read-memory.ts'

export interface Envelope {
  readonly flags: number
  readonly data: Buffer
}

export interface EnvelopeReader {
  /** Those that the piece completes. Fails for one that is too large. */
  read(piece: Buffer): Envelope[]
}

export function createEnvelopeReader(
  limitBytes: number,
  memory: Pick<ReadMemory, 'apart'>,
): EnvelopeReader {
  /** Room for the envelope that has come in part, as much of it as is known: its head, or all. */
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

  /** Takes what there is room for, and answers how much that was. */
  function keep(piece: Buffer): number {
    const count = piece.copy(room, filled)
    filled += count
    if (filled < headBytes || room.length > headBytes) return count
    const head = room
    room = memory.apart(endAt(head, 0))
    head.copy(room)
    return count
  }

  function restart(): void {
    room = Buffer.alloc(headBytes)
    filled = 0
  }

  /** Where the envelope that begins there ends; beyond everything when its head is not whole. */
  function endAt(bytes: Buffer, at: number): number {
    if (bytes.length - at < headBytes) return Infinity
    const length = bytes.readUInt32BE(at + 1)
    if (length > limitBytes) {
      const message = `A message of ${length} bytes is more than the ${limitBytes} allowed`
      throw new ConnectError(message, Code.ResourceExhausted)
    }
    return at + headBytes + length
  }
}

const headBytes = 5

function envelopeIn(bytes: Buffer): Envelope {
  return { flags: bytes.readUInt8(), data: bytes.subarray(headBytes) }
}
