/** Two real nodes that share an object store: what one has saved, the other continues. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { randomLabel } from '@atoll/kit/id'
import { createLogger } from '@atoll/kit/log'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { startNode } from '@atoll/node'
import type { RunningNode } from '@atoll/node'
import { loadNodeConfig } from '@atoll/node/config'
import { createS3Store } from '@atoll/objects/s3-store'
import type { S3Store } from '@atoll/objects/s3-store'
import { testObjectsContract } from '@atoll/simulated-node/contract/objects.contract'
import { createClient } from '@connectrpc/connect'
import { startCeph } from '../../../tools/fleet/ceph.ts'
import { createOwnedFolder } from '../../../tools/fleet/owner.ts'
import type { CephStore } from '../../../tools/fleet/ceph.ts'
import { atoll, createEnvironment } from '../installation.ts'
import { createBucket, objectSettings } from './bucket.ts'
import {
  checkTraces,
  leaveTraces,
  limit,
  readLog,
  shell,
  waitForStoredLog,
  waitUntilDurable,
} from './test-node.ts'
import type { TestNode } from './test-node.ts'

const bucket = `atoll-${randomLabel(8)}`
const size = { templateId: 'base', cpuCount: 1, memoryMb: 512, diskSizeMb: 512 }

let ceph: CephStore
let store: S3Store
let keyFile: string
let first: TestNode
let second: TestNode

before(async () => {
  ceph = await startCeph()
  await createBucket(ceph, bucket)
  store = createS3Store(objectSettings(ceph, bucket))
  const folder = await createOwnedFolder('/var/tmp/atoll-test-keys-')
  keyFile = join(folder, 'keys')
  await writeFile(keyFile, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  first = await openNode(ceph.endpoint)
  second = await openNode(ceph.endpoint)
})

after(async () => {
  await first.close()
  await second.close()
  store.close()
  await ceph[Symbol.asyncDispose]()
  await rm(join(keyFile, '..'), { recursive: true, force: true })
})

async function openNode(
  endpoint: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<TestNode> {
  const dataDir = await mkdtemp('/var/tmp/atoll-test-')
  const env = createEnvironment(dataDir, {
    ATOLL_RUNTIME: 'gvisor',
    ATOLL_S3_BUCKET: bucket,
    ATOLL_S3_ENDPOINT: endpoint,
    ATOLL_S3_PATH_STYLE: 'true',
    ATOLL_S3_PREFIX: 'test/',
    ATOLL_S3_ACCESS_KEY_ID: ceph.accessKeyId,
    ATOLL_S3_SECRET_ACCESS_KEY: ceph.secretAccessKey,
    ATOLL_S3_KEY_FILE: keyFile,
    ...settings,
  })
  const log = createLogger('warn')
  const start = () => startNode(loadNodeConfig(env), { log })
  let node: RunningNode = await start()
  let client = createClient(NodeService, node.transport)
  return {
    dataDir,
    get client() {
      return client
    },
    async restart() {
      await node.close()
      node = await start()
      client = createClient(NodeService, node.transport)
    },
    async close() {
      await node.close()
      await run(atoll, ['down'], { env, timeoutMs: 120_000 })
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

test('a paused sandbox continues on another node with its memory, and back again', async () => {
  const sandboxId = `i${randomLabel(20)}`
  await first.client.createSandbox({ ...size, sandboxId, generation: 1 })
  await leaveTraces(first, sandboxId)
  await first.client.pauseSandbox({ sandboxId, keepMemory: true, generation: 1 })
  const paused = await waitUntilDurable(first, sandboxId)
  const logOfFirst = await waitForStoredLog(first, second, sandboxId)
  assert.deepEqual([paused.keptGeneration, paused.keptId.length], [1, 12])
  const other = { ...paused, keptId: 'other', generation: 2 }
  await assert.rejects(second.client.fetchSandbox(other), /object store has no/)

  let progress = await second.client.fetchSandbox({ ...paused, generation: 2, waitSeconds: 1 })
  while (progress.isUnderway) {
    progress = await second.client.fetchSandbox({ ...paused, generation: 2, waitSeconds: 1 })
  }
  assert.ok(progress.receivedBytes > 0n)
  await second.client.resumeSandbox({ sandboxId, generation: 2 })
  await checkTraces(second, sandboxId)
  const logOfSecond = await readLog(second, sandboxId)
  assert.deepEqual(logOfSecond.slice(0, logOfFirst.length), logOfFirst)
  assert.ok(logOfSecond.length > logOfFirst.length)

  await second.client.pauseSandbox({ sandboxId, keepMemory: true, generation: 2 })
  const again = await waitUntilDurable(second, sandboxId)
  await waitFor(
    'the older content to be removed',
    async () => {
      const keys = await store.list(`sandboxes/${sandboxId}/`)
      const kept = `sandboxes/${sandboxId}/2.${again.keptId}/`
      return keys.length > 0 && keys.every((key) => key.startsWith(kept))
    },
    limit,
  )
  const logBefore = await waitForStoredLog(second, first, sandboxId)
  // The first node still has the older content, which is replaced.
  await first.client.fetchSandbox({ ...again, generation: 3 })
  await first.client.resumeSandbox({ sandboxId, generation: 3 })
  await checkTraces(first, sandboxId)

  await second.client.killSandbox({ sandboxId, generation: 2 })
  assert.ok((await store.list(`sandboxes/${sandboxId}/`)).length > 0, 'another node may need them')
  await first.client.killSandbox({ sandboxId, generation: 3, deleteObjects: true })
  const whole = await waitForStoredLog(first, second, sandboxId)
  assert.deepEqual(whole.slice(0, logBefore.length), logBefore)
  const ends = whole.filter((line) => line.includes('Sandbox ended'))
  assert.equal(ends.length, 1, 'the second node has only forgotten the sandbox')
  await waitFor(
    'the objects to be deleted',
    async () => (await store.list(`sandboxes/${sandboxId}/`)).length === 0,
    limit,
  )
})

test('any node deletes the objects of a sandbox that ended, but not while it has the sandbox', async () => {
  const sandboxId = `i${randomLabel(20)}`
  await first.client.createSandbox({ ...size, sandboxId, generation: 1 })
  await first.client.pauseSandbox({ sandboxId, keepMemory: true, generation: 1 })
  await waitUntilDurable(first, sandboxId)
  const prefix = `sandboxes/${sandboxId}/`
  const request = { sandboxes: [{ sandboxId, generation: 1 }] }
  // Not while a node has it, and not what is newer than the control plane knows.
  await first.client.deleteObjects(request)
  await second.client.deleteObjects({ sandboxes: [{ sandboxId, generation: 0 }] })
  await first.client.resumeSandbox({ sandboxId, generation: 2 })
  // As when it dies: no process asks this node to delete the objects.
  await first.client.killSandbox({ sandboxId, generation: 2 })
  assert.ok((await store.list(prefix)).length > 0)
  await second.client.deleteObjects(request)
  await waitFor('the deletion', async () => (await store.list(prefix)).length === 0, limit)
})

test('content that the store does not have is refused, and leaves nothing', async () => {
  const sandboxId = `i${randomLabel(20)}`
  const request = { sandboxId, keptGeneration: 1, generation: 2 }
  await assert.rejects(second.client.fetchSandbox(request), /object store has no/)
  await assert.rejects(second.client.getSandbox({ sandboxId }))
})

test('a snapshot of one node starts on the other with its memory', async () => {
  const [sandboxId, copyId] = [`i${randomLabel(20)}`, `i${randomLabel(20)}`]
  const snapshotId = randomLabel(20)
  await first.client.createSandbox({ ...size, sandboxId, generation: 1 })
  await leaveTraces(first, sandboxId)
  await first.client.snapshotSandbox({ sandboxId, snapshotId, generation: 1 })
  await waitFor(
    'the upload of the snapshot',
    async () => (await first.client.listSnapshots({})).durableIds.includes(snapshotId),
    limit,
  )
  const stored = await second.client.findStored({ snapshotIds: [snapshotId, 'other'] })
  assert.deepEqual(stored.snapshotIds, [snapshotId])
  await second.client.createSandbox({ ...size, sandboxId: copyId, snapshotId, generation: 1 })
  await checkTraces(second, copyId)
  await second.client.killSandbox({ sandboxId: copyId, generation: 1 })
  await first.client.killSandbox({ sandboxId, generation: 1 })
  await second.client.deleteSnapshot({ snapshotId })
  await first.client.deleteSnapshot({ snapshotId, deleteObjects: true })
  await waitFor(
    'the objects of the snapshot to be deleted',
    async () => (await store.list(`snapshots/${snapshotId}/`)).length === 0,
    limit,
  )
})

test('a template that one node built starts on the other, also after its agent restarts', async () => {
  const templateId = randomLabel(20)
  const build = first.client.buildTemplate({
    ...{ ...size, templateId, parentId: 'base', ownerId: 'team' },
    steps: [{ type: 'RUN', args: ['echo built here > /etc/built && rm /etc/issue', 'root'] }],
  })
  const events = await Array.fromAsync(build)
  assert.equal(events.at(-1)?.event.case, 'done')
  await waitFor(
    'the upload of the template',
    async () => (await first.client.listTemplates({})).durableIds.includes(templateId),
    limit,
  )
  const check = async () => {
    const sandboxId = `i${randomLabel(20)}`
    await second.client.createSandbox({ ...size, templateId, sandboxId, generation: 1 })
    const found = await shell(second, sandboxId, 'cat /etc/built; ls /etc/issue 2>&1 || true')
    assert.match(found, /^built here\n.*No such file/)
    await second.client.killSandbox({ sandboxId, generation: 1 })
  }
  const stored = await second.client.findStored({ templateIds: [templateId, 'other'] })
  assert.deepEqual(stored.templateIds, [templateId])
  await check()
  await second.restart()
  await check()
  await second.client.deleteTemplate({ templateId })
  await first.client.deleteTemplate({ templateId, deleteObjects: true })
})

test('a build uses files that another node received', async () => {
  const folder = await mkdtemp('/var/tmp/atoll-test-files-')
  await writeFile(join(folder, 'copied'), 'sent to the first node')
  const archive = await run('tar', ['--create', '--directory', folder, 'copied'])
  await rm(folder, { recursive: true })
  const files = { ownerId: 'team', hash: randomBytes(32).toString('hex') }
  await first.client.putBuildFiles(partsOf(files, Buffer.from(archive)))
  await waitFor(
    'the upload of the files',
    async () => (await second.client.findBuildFiles(files)).present,
    limit,
  )
  const templateId = randomLabel(20)
  const build = second.client.buildTemplate({
    ...{ ...size, templateId, parentId: 'base', ownerId: 'team' },
    steps: [{ type: 'COPY', args: ['copied', '/etc/copied'], filesHash: files.hash }],
  })
  const events = await Array.fromAsync(build)
  assert.equal(events.at(-1)?.event.case, 'done')
  const sandboxId = `i${randomLabel(20)}`
  await second.client.createSandbox({ ...size, templateId, sandboxId, generation: 1 })
  assert.equal(await shell(second, sandboxId, 'cat /etc/copied'), 'sent to the first node')
  await second.client.killSandbox({ sandboxId, generation: 1 })
  await second.client.deleteTemplate({ templateId, deleteObjects: true })
})

async function* partsOf(files: { readonly ownerId: string; readonly hash: string }, piece: Buffer) {
  yield { part: { case: 'files' as const, value: files } }
  yield { part: { case: 'piece' as const, value: piece } }
}

test('with the object store out of reach, a pause succeeds and its resume too', async (t) => {
  const alone = await openNode(`http://127.0.0.1:${await freePort()}`)
  t.after(() => alone.close())
  const sandboxId = `i${randomLabel(20)}`
  await alone.client.createSandbox({ ...size, sandboxId, generation: 1 })
  await leaveTraces(alone, sandboxId)
  await alone.client.pauseSandbox({ sandboxId, keepMemory: true, generation: 1 })
  assert.equal((await alone.client.getSandbox({ sandboxId })).sandbox?.isDurable, false)
  await alone.client.resumeSandbox({ sandboxId, generation: 2 })
  await checkTraces(alone, sandboxId)
  await alone.client.killSandbox({ sandboxId, generation: 2 })
})

/** Without warm pools, whose cells have disks too. */
const noCache = { ATOLL_S3_CACHE_MB: '0', ATOLL_POOL_MEMORY_MB: '0' }

/** Waits until a node has evicted this much since its start, and has the files of no cell any more. */
async function waitUntilEvicted({ client, dataDir }: TestNode, evictions: bigint): Promise<void> {
  await waitFor(
    'the eviction',
    async () => (await client.measureNode({})).evictions >= evictions,
    limit,
  )
  await waitFor(
    'the removal of the files',
    async () => {
      const names = await readdir(join(dataDir, 'cells'), { recursive: true })
      return !names.some((name) => /^c[a-z0-9]+\/(disk|memory)/.test(name))
    },
    limit,
  )
}

test('a paused sandbox that its node evicted continues there and elsewhere, with its memory', async (t) => {
  const small = await openNode(ceph.endpoint, noCache)
  t.after(() => small.close())
  const sandboxId = `i${randomLabel(20)}`
  await small.client.createSandbox({ ...size, sandboxId, generation: 1 })
  await leaveTraces(small, sandboxId)
  await small.client.pauseSandbox({ sandboxId, keepMemory: true, generation: 1 })
  await waitUntilEvicted(small, 1n)
  const check = async () => {
    const { sandboxes } = await small.client.listSandboxes({})
    const { state, isDurable, keepsMemory } =
      sandboxes.find((one) => one.sandboxId === sandboxId) ?? assert.fail('not listed')
    assert.deepEqual([state, isDurable, keepsMemory], [SandboxState.PAUSED, true, true])
    const resume = small.client.resumeSandbox({ sandboxId, generation: 1 })
    await assert.rejects(resume, /in the object store only/)
  }
  await check()
  await small.restart()
  await check()

  const evicted = await waitUntilDurable(small, sandboxId)
  await small.client.fetchSandbox({ ...evicted, generation: 2 })
  await small.client.resumeSandbox({ sandboxId, generation: 2 })
  await checkTraces(small, sandboxId)
  await small.client.pauseSandbox({ sandboxId, keepMemory: true, generation: 2 })
  const again = await waitUntilDurable(small, sandboxId)
  // The node was restarted since the first eviction, and keeps what was fetched for some time.
  await small.restart()
  await waitUntilEvicted(small, 1n)
  await second.client.fetchSandbox({ ...again, generation: 3 })
  await second.client.resumeSandbox({ sandboxId, generation: 3 })
  await checkTraces(second, sandboxId)
  await small.client.killSandbox({ sandboxId, generation: 2 })
  assert.deepEqual((await small.client.listSandboxes({})).sandboxes, [])
  await second.client.killSandbox({ sandboxId, generation: 3, deleteObjects: true })
})

test('a snapshot that its node evicted stays listed, and starts there again with its memory', async (t) => {
  const small = await openNode(ceph.endpoint, noCache)
  t.after(() => small.close())
  const [sandboxId, copyId] = [`i${randomLabel(20)}`, `i${randomLabel(20)}`]
  const snapshotId = randomLabel(20)
  await small.client.createSandbox({ ...size, sandboxId, generation: 1 })
  await leaveTraces(small, sandboxId)
  await small.client.snapshotSandbox({ sandboxId, snapshotId, generation: 1 })
  await small.client.killSandbox({ sandboxId, generation: 1 })
  await waitUntilEvicted(small, 1n)
  const folders = async () =>
    (await readdir(join(small.dataDir, 'snapshots'))).filter((name) => name === snapshotId)
  assert.deepEqual(await folders(), [])
  const { snapshotIds, durableIds } = await small.client.listSnapshots({})
  assert.deepEqual([snapshotIds, durableIds], [[snapshotId], [snapshotId]])
  await small.client.createSandbox({ ...size, sandboxId: copyId, snapshotId, generation: 1 })
  await checkTraces(small, copyId)
  await small.client.killSandbox({ sandboxId: copyId, generation: 1 })
  await small.client.deleteSnapshot({ snapshotId, deleteObjects: true })
  assert.deepEqual((await small.client.listSnapshots({})).snapshotIds, [])
  await waitFor(
    'the objects of the snapshot to be deleted',
    async () => (await store.list(`snapshots/${snapshotId}/`)).length === 0,
    limit,
  )
})

testObjectsContract('gVisor nodes with an object store', async () => ({
  get first() {
    return first.client
  },
  get second() {
    return second.client
  },
  act: async (sandboxId) => void (await shell(first, sandboxId, 'echo done')),
  async [Symbol.asyncDispose]() {},
}))
