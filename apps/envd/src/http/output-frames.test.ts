import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, toBinary, toJsonString } from '@bufbuild/protobuf'
import { StartResponseSchema } from '@atoll/contracts/gen/process/process_pb'
import { encodeEnvelope } from '@connectrpc/connect/protocol'
import { createOutputFrames } from './output-frames.ts'
import type { StreamedEvent } from './process-events.ts'

const kinds = ['stdout', 'stderr', 'pty'] as const
const sizes = [1, 2, 3, 127, 128, 32 * 1024]
const events: StreamedEvent[] = [
  { event: { event: { case: 'start', value: { pid: 7 } } } },
  ...kinds.flatMap((kind) => sizes.map((size) => output(kind, size))),
  { event: { event: { case: 'keepalive', value: {} } } },
  output('stdout', 0),
  { event: { event: { case: 'end', value: { status: 'exit status 0', exited: true } } } },
]

function output(kind: (typeof kinds)[number], size: number): StreamedEvent {
  // Within a larger buffer, as pieces of one read are.
  const bytes = new Uint8Array(size + 3).map((_, index) => index * 7).subarray(3)
  return { event: { event: { case: 'data', value: { output: { case: kind, value: bytes } } } } }
}

const encoders = {
  json: (event: StreamedEvent) =>
    Buffer.from(toJsonString(StartResponseSchema, create(StartResponseSchema, event))),
  proto: (event: StreamedEvent) =>
    toBinary(StartResponseSchema, create(StartResponseSchema, event)),
} as const

for (const format of ['json', 'proto'] as const) {
  test(`${format} frames are those that the library would have made, in their order`, async () => {
    const frame = (event: StreamedEvent) => encodeEnvelope(0, encoders[format](event))
    const frames = createOutputFrames(`application/connect+${format}`)
    const end = encodeEnvelope(2, Buffer.from('{}'))
    async function* made() {
      for await (const event of frames.takeFrom(all())) yield frame(event)
      yield end
    }
    const sent = await Array.fromAsync(frames.putInto(made()))
    assert.deepEqual(Buffer.concat(sent), Buffer.concat([...events.map(frame), end]))
    assert.equal(sent.length, events.length + 1 - gathered)
  })
}

test('what was gathered before a failure comes before it', async () => {
  const frames = createOutputFrames('application/connect+json')
  async function* failing() {
    yield { ...output('stdout', 3), more: true }
    throw new Error('the deadline passed')
  }
  const taking = frames.takeFrom(failing())
  assert.equal((await taking.next()).done, false)
  await assert.rejects(taking.next(), /the deadline passed/)
  const [frame] = await Array.fromAsync(frames.putInto(one()))
  assert.match(String(frame), /"stdout":"...."/)
})

/** Of the 18 outputs 16 wait for the next to come: twice eight go together, and two by themselves. */
const gathered = 14

async function* one() {
  yield new Uint8Array()
}

async function* all() {
  for (const [at, event] of events.entries()) yield { ...event, more: at > 0 && at <= 16 }
}
