import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ConnectResponseSchema,
  StartRequestSchema,
  StartResponseSchema,
} from '@atoll/contracts/gen/process/process_pb'
import type { ProcessEventSchema } from '@atoll/contracts/gen/process/process_pb'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { connectMethod, startMethod } from './process-messages.ts'

type Init = NonNullable<MessageInitShape<typeof ProcessEventSchema>['event']>

const value = (size: number) => Buffer.alloc(size, 'x')
const events: Record<string, Init> = {
  start: { case: 'start', value: { pid: 7 } },
  keepalive: { case: 'keepalive', value: {} },
  end: { case: 'end', value: { exitCode: -1, exited: true, status: 'exit status 255' } },
  nothing: { case: undefined },
  'data without output': { case: 'data', value: {} },
  'stdout of no bytes': { case: 'data', value: { output: { case: 'stdout', value: value(0) } } },
  'a line of stdout': { case: 'data', value: { output: { case: 'stdout', value: value(80) } } },
  '32 KiB of stderr': { case: 'data', value: { output: { case: 'stderr', value: value(32_768) } } },
  'a page of pty': { case: 'data', value: { output: { case: 'pty', value: value(4_000) } } },
}

for (const [name, event] of Object.entries(events)) {
  test(`${name} is decoded as the library decodes it`, () => {
    const started = toBinary(StartResponseSchema, create(StartResponseSchema, { event: { event } }))
    const known = fromBinary(StartResponseSchema, started)
    assert.deepEqual(startMethod.decode(Buffer.from(started)), known)
    const connected = fromBinary(ConnectResponseSchema, started)
    assert.deepEqual(connectMethod.decode(Buffer.from(started)), connected)
  })
}

/** Malformed and truncated messages, and valid ones with an unusual encoding. */
test('mutated messages are decoded as the library decodes them', () => {
  const event = events['a line of stdout']
  assert.ok(event)
  const whole = toBinary(StartResponseSchema, create(StartResponseSchema, { event: { event } }))
  const changed = Array.from({ length: 10 }, (_, at) => at).flatMap((at) => [
    Buffer.from(whole.subarray(0, at)),
    Buffer.concat([whole.subarray(0, at), whole.subarray(at + 1)]),
    ...Array.from({ length: 256 }, (_, byte) => Buffer.from(whole).fill(byte, at, at + 1)),
  ])
  const longer = [[], [0], [8, 1], [0x0a, 0], [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].map(
    (more) => Buffer.concat([whole, Buffer.from(more)]),
  )
  for (const message of [...changed, ...longer]) {
    const library = outcome(() => fromBinary(StartResponseSchema, Uint8Array.from(message)))
    assert.deepEqual(
      outcome(() => startMethod.decode(message)),
      library,
      message.toString('hex'),
    )
  }
})

test('a request is encoded as the library encodes it', () => {
  const request = { process: { cmd: 'ls', args: ['-l'] }, stdin: false }
  assert.deepEqual(
    fromBinary(StartRequestSchema, startMethod.encode(request)),
    create(StartRequestSchema, request),
  )
})

function outcome(read: () => object): unknown {
  try {
    return read()
  } catch {
    return 'refused'
  }
}
