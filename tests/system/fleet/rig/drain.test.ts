/** A drain that moves running sandboxes: two gVisor nodes, two apis and an edge, with Ceph as the object store. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { tryRun } from '@atoll/kit/run'
import { main } from '../../../../tools/fleet/part.ts'
import { startRig } from '../../../../tools/fleet/rig.ts'
import type { Rig, RigNode } from '../../../../tools/fleet/rig.ts'
import { shell } from '../../shell.ts'
import { startObjectStore } from './object-store.ts'
import {
  connectTo,
  createOn,
  nodeOf,
  readSandboxes,
  startProgram,
  testSettings,
  until,
  waitForShell,
} from './support.ts'

const drainLimitMs = 600_000
const opened = new AsyncDisposableStack()
let rig: Rig

before(async () => {
  const settings = { ...testSettings, ATOLL_RUNTIME: 'gvisor' }
  rig = opened.use(await startRig({ apis: 2, edges: 1, nodes: 2, settings, prepare: startStore }))
})
after(() => opened.disposeAsync())

/** The store outlives the nodes. */
async function startStore(host: string) {
  return opened.use(await startObjectStore(host)).settings
}

function node(index: number): RigNode {
  const found = rig.nodes[index]
  if (!found) throw new Error(`the rig has no node ${index}`)
  return found
}

/** Runs a command of operators. */
function atoll(...args: readonly string[]) {
  const env = {
    ...process.env,
    ATOLL_API_URL: rig.apis[0]?.url ?? '',
    ATOLL_ADMIN_TOKEN: rig.adminToken,
  }
  return tryRun(process.execPath, [main, ...args], { env, timeoutMs: drainLimitMs })
}

/** Asks again while an upload takes longer than a move waits for it, as on a busy machine. */
async function drainAndMove(nodeId: string): Promise<Awaited<ReturnType<typeof atoll>>> {
  for (;;) {
    const result = await atoll('node', 'drain', '--move', nodeId)
    if (!result.stderr.includes('was not uploaded to the object store in time')) return result
  }
}

test('atoll node drain --move moves running sandboxes, with memory and programs', async () => {
  const [first, second] = [node(0), node(1)]
  const connection = connectTo(rig)
  const sandboxes = [await createOn(rig, first, connection), await createOn(rig, first, connection)]
  const programs = await Promise.all(sandboxes.map(startProgram))
  for (const sandbox of sandboxes) await shell(sandbox, 'echo kept > /dev/shm/trace')
  const ends = await Promise.all(sandboxes.map(async (sandbox) => (await sandbox.getInfo()).endAt))

  const draining = drainAndMove(first.id)
  // Requests during the move wait for its end.
  const meanwhile = sandboxes.map((sandbox) => waitForShell(sandbox, 'cat /dev/shm/trace'))
  const { code, stderr } = await draining
  assert.equal(code, 0, stderr)
  assert.deepEqual(await Promise.all(meanwhile), ['kept\n', 'kept\n'])

  await until('the old node to forget them', async () => (await readSandboxes(first)).length === 0)
  for (const [index, sandbox] of sandboxes.entries()) {
    assert.equal((await nodeOf(rig, sandbox.sandboxId))?.name, second.name)
    assert.equal(await waitForShell(sandbox, programs[index] ?? ''), 'alive\n')
    assert.equal(await waitForShell(sandbox, 'cat /dev/shm/trace'), 'kept\n')
    const { endAt, state } = await sandbox.getInfo()
    assert.equal(state, 'running')
    assert.equal(endAt.getTime(), ends[index]?.getTime())
  }
  for (const sandbox of sandboxes) await sandbox.kill()
  assert.equal((await atoll('node', 'resume', first.id)).code, 0)
})

test('without another node, a drain says why each sandbox stays, and it runs on', async () => {
  const [first, second] = [node(0), node(1)]
  const sandbox = await createOn(rig, first, connectTo(rig))
  const program = await startProgram(sandbox)
  assert.equal((await atoll('node', 'drain', second.id)).code, 0)
  const { code, stderr } = await atoll('node', 'drain', '--move', first.id)
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`${sandbox.sandboxId}: No other node`))
  assert.equal(await waitForShell(sandbox, program), 'alive\n')
  assert.equal((await nodeOf(rig, sandbox.sandboxId))?.name, first.name)
  await sandbox.kill()
})
