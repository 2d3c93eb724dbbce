import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { randomLabel } from '@atoll/kit/id'
import { waitFor } from '@atoll/kit/wait'
import { Code, ConnectError } from '@connectrpc/connect'
import type { Client } from '@connectrpc/connect'
import { failsWith, size } from './node-under-test.ts'

/** Two nodes that share an object store. */
export interface NodesWithObjects {
  readonly first: Client<typeof NodeService>
  readonly second: Client<typeof NodeService>
  /** Does something in a sandbox that its log shows. */
  act(sandboxId: string): Promise<void>
}

/** Tests what nodes with a common object store know of each other. */
export function testObjectsContract(
  name: string,
  start: () => Promise<NodesWithObjects & AsyncDisposable>,
): void {
  suite(name, () => {
    let nodes: Awaited<ReturnType<typeof start>>
    before(async () => void (nodes = await start()))
    after(() => nodes[Symbol.asyncDispose]())
    testLogs(() => nodes)
    testBuildFiles(() => nodes)
    testStored(() => nodes)
  })
}

function testLogs(nodes: () => NodesWithObjects): void {
  const query = { newestFirst: false, limit: 1_000 }

  test('the log of a sandbox that was paused, and then ended, is read from another node', async () => {
    const { first, second, act } = nodes()
    const sandboxId = `i${randomLabel(20)}`
    await first.createSandbox({ ...size, sandboxId, generation: 1 })
    await act(sandboxId)
    await first.pauseSandbox({ sandboxId, keepMemory: false, generation: 1 })
    const stored = async () => {
      try {
        const { entries } = await second.readLogs({ ...query, sandboxId, fromObjects: true })
        return entries
      } catch (error) {
        assert.equal(ConnectError.from(error).code, Code.NotFound)
        return []
      }
    }
    const own = async () => (await first.readLogs({ ...query, sandboxId })).entries
    const isComplete = async () => {
      const [here, there] = [await own(), await stored()]
      return here.length > 0 && here.length === there.length
    }
    await waitFor('the log of the paused sandbox', isComplete)
    await first.killSandbox({ sandboxId, generation: 1, deleteObjects: true })
    await waitFor('the log of the ended sandbox', isComplete)
    assert.deepEqual(await stored(), await own())
    const withoutFlag = await second.readLogs({ ...query, sandboxId })
    assert.deepEqual(withoutFlag.entries, await own())
    const [newest] = (await own()).toReversed()
    const last = { sandboxId, newestFirst: true, limit: 1, fromObjects: true }
    assert.deepEqual((await second.readLogs(last)).entries, [newest])
  })

  test('a log that the object store does not have is not found there, and else empty', async () => {
    const { first } = nodes()
    const sandboxId = `i${randomLabel(20)}`
    await failsWith(Code.NotFound, first.readLogs({ ...query, sandboxId, fromObjects: true }))
    assert.deepEqual((await first.readLogs({ ...query, sandboxId })).entries, [])
  })
}

function testBuildFiles(nodes: () => NodesWithObjects): void {
  test('files for build steps that one node received are present on another, for their owner', async () => {
    const { first, second } = nodes()
    const ownerId = `team-${randomLabel(8)}`
    const hash = randomBytes(32).toString('hex')
    const isPresent = async (owner: string) =>
      (await second.findBuildFiles({ ownerId: owner, hash })).present
    assert.equal(await isPresent(ownerId), false)
    await first.putBuildFiles(partsOf({ ownerId, hash }, Buffer.from('an archive')))
    assert.equal((await first.findBuildFiles({ ownerId, hash })).present, true)
    await waitFor('the upload of the files', () => isPresent(ownerId))
    assert.equal(await isPresent(`${ownerId}-other`), false)
  })
}

function testStored(nodes: () => NodesWithObjects): void {
  const nothing = { contents: [], snapshotIds: [], templateIds: [] }

  test('a paused sandbox that one node has uploaded is found by another, by the name of its content', async () => {
    const { first, second } = nodes()
    const sandboxId = `i${randomLabel(20)}`
    await first.createSandbox({ ...size, sandboxId, generation: 1 })
    await first.pauseSandbox({ sandboxId, keepMemory: false, generation: 1 })
    const { sandbox } = await first.getSandbox({ sandboxId })
    const { keptGeneration, keptId } = sandbox ?? assert.fail('the sandbox is gone')
    const find = async (content: object) => {
      const contents = [{ sandboxId, keptGeneration, keptId, ...content }]
      const found = await second.findStored({ ...nothing, contents })
      return found.contents.map((one) => [one.sandboxId, one.keptGeneration, one.keptId])
    }
    await waitFor('the upload', async () => (await find({})).length === 1)
    assert.deepEqual(await find({}), [[sandboxId, keptGeneration, keptId]])
    assert.deepEqual(await find({ keptId: 'other' }), [])
    assert.deepEqual(await find({ keptGeneration: keptGeneration + 1 }), [])
    await first.killSandbox({ sandboxId, generation: 1, deleteObjects: true })
  })

  test('snapshots and templates that no node has uploaded are not found, and questions have a limit', async () => {
    const { second } = nodes()
    const unknown = { ...nothing, snapshotIds: ['unknown'], templateIds: ['unknown'] }
    const { contents, snapshotIds, templateIds } = await second.findStored(unknown)
    assert.deepEqual([contents, snapshotIds, templateIds], [[], [], []])
    const many = Array.from({ length: 101 }, (_, index) => `id${index}`)
    const query = { ...nothing, snapshotIds: many, templateIds: many }
    await failsWith(Code.InvalidArgument, second.findStored(query))
  })
}

async function* partsOf(files: { readonly ownerId: string; readonly hash: string }, piece: Buffer) {
  yield { part: { case: 'files' as const, value: files } }
  yield { part: { case: 'piece' as const, value: piece } }
}
