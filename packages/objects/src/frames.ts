/**
 * Encryption of long contents. The content is cut into frames of 4 MiB, each sealed with AES-256-GCM, so a reader gets no
 * byte that was not authenticated. The nonce of a frame is its number and whether it is the last: frames that are
 * moved, left out or cut off at the end do not open. A key must be used for one content only.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'

const algorithm = 'aes-256-gcm'
const tagBytes = 16
export const frameBytes = 4 * 1024 * 1024

export function newContentKey(): Buffer {
  return randomBytes(32)
}

/** `identity`: name of the content; it opens under this name only. */
export async function* sealFrames(
  plain: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  identity: string,
): AsyncGenerator<Buffer> {
  for await (const { piece, index, isLast } of regroup(plain, frameBytes)) {
    const cipher = createCipheriv(algorithm, key, nonceOf(index, isLast))
    cipher.setAAD(Buffer.from(identity))
    const sealed = cipher.update(piece)
    yield Buffer.concat([sealed, cipher.final(), cipher.getAuthTag()])
  }
}

export async function* openFrames(
  sealed: AsyncIterable<Uint8Array>,
  key: Uint8Array,
  identity: string,
): AsyncGenerator<Buffer> {
  for await (const { piece, index, isLast } of regroup(sealed, frameBytes + tagBytes)) {
    yield openFrame(piece, { key, identity, nonce: nonceOf(index, isLast) })
  }
}

function openFrame(
  piece: Buffer,
  { key, identity, nonce }: { key: Uint8Array; identity: string; nonce: Buffer },
): Buffer {
  if (piece.length < tagBytes) throw damagedObject()
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(identity))
  decipher.setAuthTag(piece.subarray(-tagBytes))
  const plain = decipher.update(piece.subarray(0, -tagBytes))
  try {
    decipher.final()
  } catch (cause) {
    throw damagedObject(cause)
  }
  return plain
}

export function damagedObject(cause?: unknown): Fault {
  return new Fault(
    'unavailable',
    'object_damaged',
    'An object in the object store is damaged or belongs to something else, so it is not used. Ask an operator to restore it.',
    { cause },
  )
}

function nonceOf(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(index, 5, 6)
  nonce.writeUInt8(isLast ? 1 : 0, 11)
  return nonce
}

interface Piece {
  readonly piece: Buffer
  readonly index: number
  readonly isLast: boolean
}

/** Cuts a stream into pieces of the same size. The last one may be shorter, and is empty only for an empty stream. */
async function* regroup(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Piece> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  let index = 0
  for await (const chunk of source) {
    if (chunk.length === 0) continue
    waiting.push(chunk)
    bytes += chunk.length
    // A full piece waits for the next byte: it may be the last one.
    while (bytes > size) {
      const all = Buffer.concat(waiting)
      yield { piece: all.subarray(0, size), index, isLast: false }
      index += 1
      waiting = [all.subarray(size)]
      bytes -= size
    }
  }
  yield { piece: Buffer.concat(waiting), index, isLast: true }
}
