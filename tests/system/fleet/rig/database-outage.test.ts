/** PostgreSQL ends and comes back, once in order and once by a crash. No part of the fleet is restarted for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from 'e2b'
import { startRig, waitForNodes } from '../../../../tools/fleet/rig.ts'
import type { Rig } from '../../../../tools/fleet/rig.ts'
import { shell } from '../../shell.ts'
import {
  callApi,
  connectTo,
  createOn,
  createSandbox,
  getHost,
  startProgram,
  testSettings,
  until,
  waitForShell,
} from './support.ts'

const unknownId = 'i0000000000000000000z'

/** The same sandbox, reached through each edge. */
async function throughEachEdge(rig: Rig, sandbox: Sandbox): Promise<Sandbox[]> {
  const { sandboxId } = sandbox
  return Promise.all(
    rig.edges.map((_, edge) => Sandbox.connect(sandboxId, connectTo(rig, 0, edge))),
  )
}

async function checkOutage(rig: Rig, sandboxes: readonly Sandbox[], alive: string): Promise<void> {
  for (const [api] of rig.apis.entries()) {
    const connection = connectTo(rig, api)
    const created = await callApi(connection, 'POST', '/sandboxes', { templateID: 'base' })
    assert.equal(created.status, 503, created.body)
    assert.match(created.body, /The database does not answer/)
    assert.equal((await callApi(connection, 'GET', '/v2/sandboxes')).status, 503)
  }
  for (const sandbox of sandboxes)
    assert.equal((await shell(sandbox, alive, { timeoutMs: 300_000 })).stdout, 'alive\n')
  for (const { url } of rig.edges) {
    const reply = await getHost(url, `8080-${unknownId}.example.test`)
    assert.equal(reply.status, 503, reply.body)
    assert.match(reply.body, /No api of the fleet answers/)
  }
}

/** Each api must serve again by itself. */
async function checkRecovery(rig: Rig, sandboxes: readonly Sandbox[], alive: string) {
  for (const [api] of rig.apis.entries()) {
    const connection = connectTo(rig, api, api)
    const sandbox = await until(`a create through api ${api + 1}`, () =>
      createSandbox(connection).catch(() => undefined),
    )
    assert.equal(await waitForShell(sandbox, 'hostname'), `${sandbox.sandboxId}\n`)
    assert.equal(await sandbox.kill(), true)
  }
  await waitForNodes(rig)
  for (const sandbox of sandboxes) assert.equal(await waitForShell(sandbox, alive), 'alive\n')
  for (const { url } of rig.edges) {
    const reply = await getHost(url, `8080-${unknownId}.example.test`)
    assert.equal(reply.status, 502, reply.body)
    assert.match(reply.body, /The sandbox was not found/)
  }
}

test('an outage of the database leaves sandboxes reachable, and ends without a restart', async () => {
  await using rig = await startRig({ nodes: 2, settings: testSettings })
  const [node] = rig.nodes
  assert.ok(node)
  const sandbox = await createOn(rig, node, connectTo(rig))
  const alive = await startProgram(sandbox)
  const sandboxes = await throughEachEdge(rig, sandbox)
  for (const one of sandboxes) assert.equal(await waitForShell(one, alive), 'alive\n')
  const pids = rig.parts.map((part) => part.pid())

  await rig.database.stop('SIGINT')
  await checkOutage(rig, sandboxes, alive)
  await rig.database.restart()
  await checkRecovery(rig, sandboxes, alive)
  assert.deepEqual(
    rig.parts.map((part) => part.isRunning() && part.pid()),
    pids,
  )

  // A node agent that restarts meanwhile is found by the edges without an api.
  await rig.database.stop('SIGKILL')
  await node.stop('SIGKILL')
  await node.start()
  for (const one of sandboxes) assert.equal(await waitForShell(one, alive), 'alive\n')
  await checkOutage(rig, sandboxes, alive)
  await rig.database.restart()
  await checkRecovery(rig, sandboxes, alive)
})
