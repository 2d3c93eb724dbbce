/**
 * Encodes and sends the stream frames that carry program output. The library takes forty times as long to encode
 * bytes as JSON, and output is the only bulk data. All other frames are left to the library.
 */
import type { Writable } from 'node:stream'
import { createContextKey } from '@connectrpc/connect'
import { chunkLimitBytes } from '../../domain/process/process.ts'
import type { OutputKind } from '../../domain/process/process.ts'
import type { StreamedEvent } from './process-events.ts'
import { sendChunk } from '../wire/send-chunks.ts'

export interface OutputFrames {
  /**
   * Sends output events and yields all others for the library. The library requests the next event only after
   * writing the last, so the order is kept.
   */
  sendOutput(events: AsyncIterable<StreamedEvent>): AsyncGenerator<StreamedEvent>
}

export const outputFramesKey = createContextKey<OutputFrames | undefined>(undefined)

export function createOutputFrames(
  contentType: string | undefined,
  response: Writable,
): OutputFrames {
  const encode = contentType?.includes('json') ? writeJson : writeBinary
  let reusedBuffer = Buffer.alloc(0)
  return {
    async *sendOutput(events) {
      for await (const { event } of events) {
        const output = outputOf(event)
        if (output) await sendChunk(response, framesOf(output.kind, output.bytes))
        else yield { event }
      }
    },
  }

  /** Combines all frames of one read into one write, because network writes are expensive under gVisor. */
  function framesOf(kind: OutputKind, bytes: Uint8Array): Buffer {
    const limit = chunkLimitBytes[kind]
    const count = Math.max(1, Math.ceil(bytes.length / limit))
    const target = borrowBuffer(count * overheadBytes + Math.ceil(bytes.length / 3 + count) * 4)
    let end = 0
    for (let at = 0; at < count; at++) {
      const start = end + headerBytes
      const part = bytes.subarray(at * limit, (at + 1) * limit)
      end = encode(target, start, { kind, bytes: part })
      target.writeUInt8(0, start - headerBytes) // no flags
      target.writeUInt32BE(end - start, start - headerBytes + 1)
    }
    return target.subarray(0, end)
  }

  /** Reuses one buffer for large output: allocating one per read would cost more than the encoding. */
  function borrowBuffer(size: number): Buffer {
    if (size < reuseFromBytes) return Buffer.allocUnsafe(size)
    if (reusedBuffer.length < size) reusedBuffer = Buffer.allocUnsafeSlow(size)
    return reusedBuffer
  }
}

interface OutputPart {
  readonly kind: OutputKind
  readonly bytes: Uint8Array
}

function outputOf({ event }: StreamedEvent['event']): OutputPart | undefined {
  if (event.case !== 'data') return undefined
  const { output } = event.value
  return output?.case === undefined ? undefined : { kind: output.case, bytes: output.value }
}

/**
 * Writes a message to `target` at `start` and returns its end, like writeBinary. Writes in three parts, because
 * building one string first takes twice as long.
 */
function writeJson(target: Buffer, start: number, { kind, bytes }: OutputPart): number {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  let end = start + target.write(`{"event":{"data":{"${kind}":"`, start, 'latin1')
  end += target.write(text, end, 'latin1')
  return end + target.write('"}}}', end, 'latin1')
}

/** Nested fields, all of wire type 2: response (1: event), event (2: data), output (one field per stream). */
function writeBinary(target: Buffer, start: number, { kind, bytes }: OutputPart): number {
  const field = lengthDelimited(fields[kind], bytes.length)
  const data = lengthDelimited(2, field.length + bytes.length)
  const event = lengthDelimited(1, data.length + field.length + bytes.length)
  const heads = [...event, ...data, ...field]
  target.set(heads, start)
  target.set(bytes, start + heads.length)
  return start + heads.length + bytes.length
}

const fields = { stdout: 1, stderr: 2, pty: 3 } as const satisfies Record<OutputKind, number>

function lengthDelimited(field: number, length: number): number[] {
  const bytes = [(field << 3) | 2]
  let rest = length
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return [...bytes, rest]
}

/** Flags and message length. */
const headerBytes = 5

/** Upper bound for the frame header and the field names of a message. */
const overheadBytes = 64

const reuseFromBytes = 16 * 1024
