import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'node:test'
import { create, toBinary, toJsonString } from '@bufbuild/protobuf'
import { StartResponseSchema } from '@atoll/contracts/gen/process/process_pb'
import { encodeEnvelope } from '@connectrpc/connect/protocol'
import { chunkLimitBytes } from '../../domain/process/process.ts'
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

/** Returns a view into a larger buffer, as a read does. */
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

  test(`${format} frames equal those of the library, in order`, async () => {
    const sent = await sendAll(`application/connect+${format}`, events, frame)
    assert.deepEqual(Buffer.concat(sent), Buffer.concat(events.map(frame)))
    assert.equal(sent.length, events.length)
  })

  for (const kind of kinds) {
    const limit = chunkLimitBytes[kind]
    test(`one read of ${kind} becomes ${format} frames of at most ${limit} bytes`, async () => {
      const whole = bytes(200_001)
      const sent = await sendAll(`application/connect+${format}`, [output(kind, whole)], frame)
      const parts: StreamedEvent[] = []
      for (let at = 0; at < whole.length; at += limit) {
        parts.push(output(kind, whole.subarray(at, at + limit)))
      }
      assert.equal(sent.length, 1)
      assert.ok(Buffer.concat(sent).equals(Buffer.concat(parts.map(frame))))
    })
  }
}

test('the next output is requested only after the last is sent', async () => {
  const writes: (() => void)[] = []
  const response = new Writable({ write: (_chunk, _encoding, sent) => void writes.push(sent) })
  let asked = 0
  async function* counted() {
    for (; asked < 3; asked++) yield output('stdout', bytes(100_000))
  }
  const taking = createOutputFrames('application/connect+proto', response).sendOutput(counted())
  const over = taking.next()
  for (let expected = 0; expected < 3; expected++) {
    await turn()
    assert.equal(asked, expected)
    writes.shift()?.()
  }
  assert.equal((await over).done, true)
})

test('a disconnect does not block the output', async () => {
  const response = new Writable({ write() {} })
  const taking = createOutputFrames('application/connect+proto', response).sendOutput(
    streamOf([output('stdout', bytes(100_000))]),
  )
  const over = taking.next()
  await turn()
  response.destroy()
  assert.equal((await over).done, true)
})

/** Returns the chunks written for `given`; `frame` stands for the library's encoder. */
async function sendAll(
  contentType: string,
  given: readonly StreamedEvent[],
  frame: (event: StreamedEvent) => Uint8Array,
): Promise<Buffer[]> {
  const sent: Buffer[] = []
  const response = new Writable({
    write(chunk: Buffer, _encoding, done) {
      sent.push(Buffer.from(chunk))
      setImmediate(done)
    },
  })
  for await (const event of createOutputFrames(contentType, response).sendOutput(streamOf(given))) {
    response.write(frame(event))
  }
  return sent
}

async function* streamOf(given: readonly StreamedEvent[]) {
  yield* given
}
