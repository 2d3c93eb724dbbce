/**
 * Messages of the process service's streams. Output messages are decoded here, because the library takes several times
 * as long; the library decodes all others.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  ConnectRequestSchema,
  ConnectResponseSchema,
  StartRequestSchema,
  StartResponseSchema,
} from '@atoll/contracts/gen/process/process_pb'
import type {
  ConnectResponse,
  ProcessEvent,
  ProcessEvent_DataEvent,
  StartResponse,
} from '@atoll/contracts/gen/process/process_pb'
import type { StreamedMethod } from './open-stream.ts'

export const startMethod: StreamedMethod<
  MessageInitShape<typeof StartRequestSchema>,
  StartResponse
> = {
  path: '/process.Process/Start',
  encode: (request) => toBinary(StartRequestSchema, create(StartRequestSchema, request)),
  decode(message) {
    const event = readOutput(message)
    return event
      ? { $typeName: 'process.StartResponse', event }
      : fromBinary(StartResponseSchema, bytesFrom(message, 0))
  },
}

export const connectMethod: StreamedMethod<
  MessageInitShape<typeof ConnectRequestSchema>,
  ConnectResponse
> = {
  path: '/process.Process/Connect',
  encode: (request) => toBinary(ConnectRequestSchema, create(ConnectRequestSchema, request)),
  decode(message) {
    const event = readOutput(message)
    return event
      ? { $typeName: 'process.ConnectResponse', event }
      : fromBinary(ConnectResponseSchema, bytesFrom(message, 0))
  },
}

/** Decodes field 1 of either message if it contains output and nothing else. */
function readOutput(message: Buffer): ProcessEvent | undefined {
  const event = contentOf(message, 0, 1)
  const data = contentOf(message, event, 2)
  const output =
    outputIn(message, data, 'stdout') ??
    outputIn(message, data, 'stderr') ??
    outputIn(message, data, 'pty')
  return (
    output && {
      $typeName: 'process.ProcessEvent',
      event: { case: 'data', value: { $typeName: 'process.ProcessEvent.DataEvent', output } },
    }
  )
}

type Output = ProcessEvent_DataEvent['output']
type OutputKind = NonNullable<Output['case']>

function outputIn(message: Buffer, at: number, kind: OutputKind): Output | undefined {
  const start = contentOf(message, at, fields[kind])
  return start === none ? undefined : { case: kind, value: bytesFrom(message, start) }
}

const fields = { stdout: 1, stderr: 2, pty: 3 } as const satisfies Record<OutputKind, number>

const none = -1

/** Returns the offset of this field's content if the field starts at `at` and fills the rest of the message. */
function contentOf(message: Buffer, at: number, field: number): number {
  if (message[at] !== ((field << 3) | lengthDelimited)) return none
  let length = 0
  for (let byteAt = at + 1, shift = 0; shift < 28; byteAt += 1, shift += 7) {
    const byte = message[byteAt] ?? 0
    length += (byte & 0x7f) << shift
    if (byte < 0x80) return byteAt + 1 + length === message.length ? byteAt + 1 : none
  }
  return none
}

const lengthDelimited = 2

/** Returns a plain Uint8Array, as the library does: some methods of Buffer behave differently. */
function bytesFrom({ buffer, byteOffset, length }: Buffer, start: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + start, length - start)
}
