import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { UnknownImage } from './gvisor-image.ts'
import { inspectImage, repairImage } from './gvisor-image-repair.ts'

const [int, uint, nil, reference, array, map, structure, fields, face] = [
  1, 2, 5, 6, 9, 10, 11, 13, 14,
] as const

// The runtime contract tests real runsc images; this one is minimal.

test('a member that its epoll set has no more loses its event mask, and nothing else changes', async (t) => {
  const file = await setup(t, image())
  assert.equal((await repairImage(file))?.hasAbortedConnections, false)
  assert.deepEqual(await readFile(file), image({ staleMask: [0x80, 0x80, 0x80, 0x80, 0x00] }))
})

test('an image without stale members is not changed', async () => {
  assert.deepEqual(await inspectImage(image({ set: [2, 3] })), {
    staleMasks: [],
    hasAbortedConnections: false,
  })
})

test('an aborted connection counts when something waits for it', async () => {
  const find = async (connection: Connection) =>
    (await inspectImage(image({ connection }))).hasAbortedConnections
  assert.equal(await find({ error: 'ErrConnectionAborted', hasWaiters: true }), true)
  assert.equal(await find({ error: 'ErrConnectionAborted', hasWaiters: false }), false)
  assert.equal(await find({ error: 'ErrConnectionReset', hasWaiters: true }), false)
  assert.equal(await find({ hasWaiters: true }), false)
})

for (const [name, broken] of [
  ['empty', Buffer.alloc(0)],
  ['compressed', image({ compression: 'flate-best-speed' })],
  ['truncated', image().subarray(0, -3)],
  ['with more than its graphs', Buffer.concat([image(), frame(1)])],
  ['of other values', image({ value: [99] })],
  ['nested without end', image({ value: [...nested(5000), uint, 1] })],
  ['with a count that no image has', image({ value: [map, 255, 255, 255, 255, 127, nil, nil] })],
] as const) {
  test(`an image ${name} is not changed`, async (t) => {
    const file = await setup(t, broken)
    assert.equal(await repairImage(file), undefined)
    assert.deepEqual(await readFile(file), broken)
    await assert.rejects(inspectImage(broken), UnknownImage)
  })
}

test('a flipped bit anywhere is survived', async () => {
  const whole = image()
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const flipped = Buffer.from(whole)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    await inspectImage(flipped).catch((error: unknown) => assert.ok(error instanceof UnknownImage))
  }
})

async function setup(t: TestContext, content: Buffer): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'atoll-image-'))
  t.after(() => rm(dir, { recursive: true }))
  const file = join(dir, 'checkpoint.img')
  await writeFile(file, content)
  return file
}

interface Connection {
  readonly error?: string
  readonly hasWaiters: boolean
}

/** Builds an image with two interests: the set contains the first; the second is a removed former neighbour. */
function image({
  compression = 'none',
  staleMask = [0x99, 0x80, 0x80, 0x80, 0x08],
  set = [2],
  value = [uint, 7],
  connection = { hasWaiters: false },
}: {
  readonly compression?: string
  readonly staleMask?: readonly number[]
  readonly set?: readonly number[]
  readonly value?: readonly number[]
  readonly connection?: Connection
} = {}): Buffer {
  const head = JSON.stringify({ compression })
  const length = Buffer.alloc(8)
  length.writeBigUInt64BE(BigInt(head.length))
  const key = [structure, 2, fields, 2, nil, int, 14]
  const stream = [
    ...graph(1, [...object(1, value)]),
    ...graph(6, [
      ...type('pkg/sentry/vfs.epollInterest', ['key', 'mask', 'next']),
      ...type('pkg/sentry/vfs.epollInterestKey', ['file', 'num']),
      ...type('pkg/tcpip/transport/tcp.Endpoint', ['state', 'waiterQueue', 'hardError']),
      ...type('pkg/waiter.Queue', ['list']),
      ...type('pkg/waiter.waiterList', ['head', 'tail']),
      ...type(`pkg/tcpip.${connection.error ?? 'ErrUnused'}`, []),
      ...object(1, [reference, 4, 0]),
      ...object(2, [structure, 1, fields, 3, ...key, uint, 0x19, reference, 3, 0]),
      ...object(3, [structure, 1, fields, 3, ...key, uint, ...staleMask, nil]),
      ...object(4, [
        map,
        set.length,
        ...set.flatMap((id, i) =>
          i === 0 ? [...key, reference, id, 0] : [...key.slice(1), id, 0],
        ),
      ]),
      ...object(5, [
        ...[structure, 3, fields, 3, nil, reference, 6, 0],
        ...(connection.error ? [face, 1, 0, 6, reference, 7, 0] : [face, 5, nil]),
      ]),
      ...object(6, [
        ...[structure, 4],
        ...(connection.hasWaiters
          ? [structure, 5, fields, 2, reference, 2, 0, reference, 2, 0]
          : [nil]),
      ]),
    ]),
  ]
  const frames = stream.map((piece) => frame(piece))
  return Buffer.concat([
    Buffer.from('gVisorSF'),
    length,
    Buffer.from(head),
    Buffer.alloc(32),
    ...frames,
  ])
}

function graph(size: number, content: readonly (number | string)[]): (number | string)[] {
  return [0x80 | size, ...Array<number>(8).fill(0x80), 1, ...content]
}

function type(name: string, names: readonly string[]): (number | string)[] {
  return [17, name.length, name, names.length, ...names.flatMap((one) => [one.length, one])]
}

function nested(depth: number): number[] {
  return Array.from({ length: depth }, () => [array, 1]).flat()
}

function object(id: number, value: readonly number[]): number[] {
  return [uint, id, ...value]
}

function frame(piece: number | string): Buffer {
  const content = typeof piece === 'number' ? Buffer.of(piece) : Buffer.from(piece)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length)
  return Buffer.concat([length, content])
}
