/**
 * Frames of a stream that carry a program's output, made here: the library's way of writing bytes as JSON takes forty
 * times as long, and output is all that ever comes in quantities. Every other frame is the library's.
 */
import { createContextKey } from '@connectrpc/connect'
import type { OutputKind } from '../domain/process.ts'
import type { StreamedEvent } from './process-events.ts'

/** Between the service, which knows the events, and the answer, which is made of frames. */
export interface OutputFrames {
  /**
   * Keeps the output, and leaves the library an empty event in its place. What waits already goes together: a write
   * to the network is dear under gVisor.
   */
  takeFrom(events: AsyncIterable<StreamedEvent>): AsyncGenerator<StreamedEvent>
  /** Puts the output in the place of the frames that were made of the empty events. Their order is the same. */
  putInto(frames: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>
}

export const outputFramesKey = createContextKey<OutputFrames | undefined>(undefined)

export function createOutputFrames(contentType: string | undefined): OutputFrames {
  const encode = contentType?.includes('json') ? jsonFrame : binaryFrame
  const taken: (Uint8Array | undefined)[] = []
  return {
    async *takeFrom(events) {
      let gathered: Buffer[] = []
      const keep = () => {
        taken.push(gathered.length === 1 ? gathered[0] : Buffer.concat(gathered))
        gathered = []
        return empty
      }
      try {
        for await (const { event, more } of events) {
          const output = outputOf(event)
          if (output) gathered.push(encode(output.kind, output.bytes))
          if (output && more && gathered.length < gatheredFrames) continue
          if (gathered.length > 0) yield keep()
          if (output) continue
          taken.push(undefined)
          yield { event }
        }
      } catch (cause) {
        // Of a program that its deadline killed, the output until then is still told.
        if (gathered.length > 0) yield keep()
        throw cause
      }
    },
    async *putInto(frames) {
      // The frame that ends the stream, which stands for no event, finds nothing taken.
      for await (const frame of frames) yield taken.shift() ?? frame
    },
  }
}

/** At most 256 KiB of output, and a third more as base64. */
const gatheredFrames = 8

const empty: StreamedEvent = { event: { event: { case: 'keepalive', value: {} } } }

function outputOf({ event }: StreamedEvent['event']) {
  if (event.case !== 'data') return undefined
  const { output } = event.value
  return output?.case === undefined ? undefined : { kind: output.case, bytes: output.value }
}

function jsonFrame(kind: OutputKind, bytes: Uint8Array): Buffer {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  const message = `{"event":{"data":{"${kind}":"${text}"}}}`
  const frame = Buffer.allocUnsafe(headBytes + message.length)
  frame.write(message, headBytes, 'latin1')
  return writeHead(frame)
}

/** A response (field 1: event) with an event (field 2: data) with output (a field for each kind), all of wire type 2. */
function binaryFrame(kind: OutputKind, bytes: Uint8Array): Buffer {
  const field = lengthDelimited(fields[kind], bytes.length)
  const data = lengthDelimited(2, field.length + bytes.length)
  const event = lengthDelimited(1, data.length + field.length + bytes.length)
  const heads = [...event, ...data, ...field]
  const frame = Buffer.allocUnsafe(headBytes + heads.length + bytes.length)
  frame.set(heads, headBytes)
  frame.set(bytes, headBytes + heads.length)
  return writeHead(frame)
}

const fields = { stdout: 1, stderr: 2, pty: 3 } as const satisfies Record<OutputKind, number>

function lengthDelimited(field: number, length: number): number[] {
  const bytes = [(field << 3) | 2]
  let rest = length
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return [...bytes, rest]
}

/** Flags, of which none is set, and the length of the message. */
const headBytes = 5

function writeHead(frame: Buffer): Buffer {
  frame.writeUInt8(0, 0)
  frame.writeUInt32BE(frame.length - headBytes, 1)
  return frame
}
