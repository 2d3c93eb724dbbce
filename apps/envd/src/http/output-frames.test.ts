import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, toBinary, toJsonString } from '@bufbuild/protobuf'
import { StartResponseSchema } from '@atoll/contracts/gen/process/process_pb'
import { encodeEnvelope } from '@connectrpc/connect/protocol'
import { chunkLimitBytes } from '../domain/process.ts'
import { createOutputFrames } from './output-frames.ts'
import type { StreamedEvent } from './process-events.ts'

const kinds = ['stdout', 'stderr', 'pty'] as const
const sizes = [1, 2, 3, 127, 128, 16 * 1024]
const events: StreamedEvent[] = [
  { event: { event: { case: 'start', value: { pid: 7 } } } },
  ...kinds.flatMap((kind) => sizes.map((size) => output(kind, bytes(size)))),
  { event: { event: { case: 'keepalive', value: {} } } },
  output('stdout', bytes(0)),
  { event: { event: { case: 'end', value: { status: 'exit status 0', exited: true } } } },
]

function output(kind: (typeof kinds)[number], value: Uint8Array): StreamedEvent {
  return { event: { event: { case: 'data', value: { output: { case: kind, value } } } } }
}

/** Within a larger buffer, as pieces of one read are. */
function bytes(size: number): Uint8Array {
  return new Uint8Array(size + 3).map((_, index) => index * 7).subarray(3)
}

const encoders = {
  json: (event: StreamedEvent) =>
    Buffer.from(toJsonString(StartResponseSchema, create(StartResponseSchema, event))),
  proto: (event: StreamedEvent) =>
    toBinary(StartResponseSchema, create(StartResponseSchema, event)),
} as const

for (const format of ['json', 'proto'] as const) {
  const frame = (event: StreamedEvent) => encodeEnvelope(0, encoders[format](event))

  test(`${format} frames are those that the library would have made, in their order`, async () => {
    const frames = createOutputFrames(`application/connect+${format}`, () => true)
    const end = encodeEnvelope(2, Buffer.from('{}'))
    async function* made() {
      for await (const event of frames.takeFrom(streamOf(events))) yield frame(event)
      yield end
    }
    const sent: Buffer[] = []
    for await (const piece of frames.putInto(made())) sent.push(Buffer.from(piece))
    assert.deepEqual(Buffer.concat(sent), Buffer.concat([...events.map(frame), end]))
    assert.equal(sent.length, events.length + 1)
  })

  for (const kind of kinds) {
    const limit = chunkLimitBytes[kind]
    test(`what is read of ${kind} at once goes in ${format} frames of at most ${limit}`, async () => {
      const frames = createOutputFrames(`application/connect+${format}`, () => true)
      const whole = bytes(200_001)
      const taking = frames.takeFrom(streamOf([output(kind, whole)]))
      const sent: Uint8Array[] = []
      for await (const _ of taking) sent.push(...(await Array.fromAsync(frames.putInto(nothing()))))
      const parts: StreamedEvent[] = []
      for (let at = 0; at < whole.length; at += limit) {
        parts.push(output(kind, whole.subarray(at, at + limit)))
      }
      assert.equal(sent.length, 1)
      assert.ok(Buffer.concat(sent).equals(Buffer.concat(parts.map(frame))))
    })
  }
}

test('memory is used again only when the system has taken what was in it', async () => {
  let isSent = true
  const frames = createOutputFrames('application/connect+proto', () => isSent)
  const all = [0, 1, 2].map(() => output('stdout', bytes(100_000)))
  const memory: ArrayBufferLike[] = []
  for await (const _ of frames.takeFrom(streamOf(all))) {
    for await (const piece of frames.putInto(nothing())) memory.push(piece.buffer)
    isSent = memory.length !== 1
  }
  assert.deepEqual([memory[1] === memory[0], memory[2] === memory[0]], [false, true])
})

test('what was printed before a failure comes before it', async () => {
  const frames = createOutputFrames('application/connect+json', () => true)
  async function* failing() {
    yield output('stdout', bytes(3))
    throw new Error('the deadline passed')
  }
  const taking = frames.takeFrom(failing())
  assert.equal((await taking.next()).done, false)
  await assert.rejects(taking.next(), /the deadline passed/)
  const [frame] = await Array.fromAsync(frames.putInto(nothing()))
  assert.match(String(frame), /"stdout":"...."/)
})

/** A frame for one event to take the place of. */
async function* nothing() {
  yield new Uint8Array()
}

async function* streamOf(given: readonly StreamedEvent[]) {
  yield* given
}
