/** Three gVisor nodes, two apis and two edges, as processes with networks of their own. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Sandbox } from 'e2b'
import { startRig, waitForNodes } from '../../../../tools/fleet/rig.ts'
import type { Rig, RigNode } from '../../../../tools/fleet/rig.ts'
import { shell } from '../../shell.ts'
import {
  callApi,
  connectTo,
  createOn,
  createSandbox,
  getHost,
  nodeOf,
  readSandboxes,
  startProgram,
  testSettings,
  until,
  waitForShell,
} from './support.ts'

let rig: Rig
before(async () => {
  rig = await startRig({ settings: testSettings })
})
after(() => rig?.[Symbol.asyncDispose]())

const port = 8080

async function serveHostname(sandbox: Sandbox): Promise<void> {
  const serve = `mkdir -p /srv/www && hostname > /srv/www/index.html && cd /srv/www && python3 -m http.server ${port}`
  await sandbox.commands.run(serve, { user: 'root', background: true, timeoutMs: 0 })
}

/** Lists records that the api shows, by ID. */
async function listStates(): Promise<Map<string, string>> {
  const { status, body } = await callApi(connectTo(rig), 'GET', '/v2/sandboxes?limit=100')
  assert.equal(status, 200, body)
  const list: { sandboxID: string; state: string }[] = JSON.parse(body)
  return new Map(list.map(({ sandboxID, state }) => [sandboxID, state]))
}

async function killAll(sandboxes: readonly Sandbox[]): Promise<void> {
  for (const sandbox of sandboxes) await sandbox.kill()
}

test('sandboxes spread over all nodes, and either edge reaches each of them by its host name', async () => {
  const sandboxes: Sandbox[] = []
  for (let index = 0; index < 6; index += 1)
    sandboxes.push(await createSandbox(connectTo(rig, index % 2, index % 2)))
  const places = await Promise.all(sandboxes.map(({ sandboxId }) => nodeOf(rig, sandboxId)))
  assert.equal(new Set(places.map((node) => node?.name)).size, 3, 'nodes with sandboxes')

  await Promise.all(sandboxes.map(serveHostname))
  for (const sandbox of sandboxes) {
    for (const edge of rig.edges) {
      const reply = await until(`the server through ${edge.name}`, async () => {
        const found = await getHost(edge.url, sandbox.getHost(port))
        return found.status === 200 && found
      })
      assert.equal(reply.body.trim(), sandbox.sandboxId)
    }
  }
  await killAll(sandboxes)
  const gone = await getHost(rig.edges[0]?.url ?? '', sandboxes[0]?.getHost(port) ?? '')
  assert.notEqual(gone.status, 200)
})

test('nothing is lost when any api, edge or node agent is killed', async () => {
  const sandboxes: Sandbox[] = []
  for (const node of rig.nodes) sandboxes.push(await createOn(rig, node, connectTo(rig)))
  const programs = await Promise.all(sandboxes.map(startProgram))
  const checkAll = async () => {
    for (const [index, sandbox] of sandboxes.entries())
      assert.equal(await waitForShell(sandbox, programs[index] ?? ''), 'alive\n')
  }
  for (const part of rig.parts) {
    await part.stop('SIGKILL')
    try {
      // The other api and the other edge serve meanwhile.
      const [api, edge] = [part === rig.apis[0] ? 1 : 0, part === rig.edges[0] ? 1 : 0]
      const created = await createSandbox(connectTo(rig, api, edge))
      assert.equal((await shell(created, 'hostname')).stdout.trim(), created.sandboxId)
      await created.kill()
    } finally {
      await part.start()
    }
  }
  await waitForNodes(rig)
  await checkAll()
  const states = await listStates()
  for (const { sandboxId } of sandboxes) assert.equal(states.get(sandboxId), 'running')
  await killAll(sandboxes)
})

/** Waits until the record has ended, and checks the reason. */
async function waitForLoss(sandbox: Sandbox): Promise<void> {
  const reply = await until('the end of the record', async () => {
    const found = await callApi(connectTo(rig), 'GET', `/sandboxes/${sandbox.sandboxId}`)
    return found.status === 404 && found
  })
  assert.match(reply.body, /node lost/)
}

/** Waits until the node has only the sandboxes that are expected there. */
async function waitForSandboxes(node: RigNode, expected: readonly string[]): Promise<void> {
  await until(`${node.name} to have ${expected.length} sandboxes`, async () => {
    const ids = (await readSandboxes(node)).map(({ sandboxId }) => sandboxId)
    return ids.length === expected.length && expected.every((id) => ids.includes(id))
  })
}

test('a node that is cut off loses its running sandboxes, and its paused ones come back with it', async () => {
  const [node, ...others] = rig.nodes
  assert.ok(node)
  const [running, paused] = [
    await createOn(rig, node, connectTo(rig)),
    await createOn(rig, node, connectTo(rig)),
  ]
  const elsewhere = await createOn(rig, others[0] ?? node, connectTo(rig))
  const program = await startProgram(paused)
  await paused.pause()

  await node.machine.cut([rig.apiAddress, ...rig.edges.map(({ machine }) => machine.address)])
  await waitForLoss(running)
  const resume = await callApi(connectTo(rig), 'POST', `/sandboxes/${paused.sandboxId}/resume`)
  assert.equal(resume.status, 503, resume.body)
  assert.equal((await listStates()).get(paused.sandboxId), 'paused')
  assert.equal((await listStates()).get(elsewhere.sandboxId), 'running')
  const created = await createSandbox(connectTo(rig))
  assert.notEqual(await nodeOf(rig, created.sandboxId), node)

  await node.machine.heal()
  await waitForNodes(rig)
  await waitForSandboxes(node, [paused.sandboxId])
  await until('the paused sandbox to resume', () =>
    paused.connect().then(
      () => true,
      () => false,
    ),
  )
  assert.equal(await waitForShell(paused, program), 'alive\n')
  await killAll([paused, elsewhere, created])
  for (const each of rig.nodes) await waitForSandboxes(each, [])
})

test('sandboxes of a node that the apis do not reach serve through the edges, until the node is back', async () => {
  const [, node] = rig.nodes
  assert.ok(node)
  const sandbox = await createOn(rig, node, connectTo(rig))
  await serveHostname(sandbox)
  const fetchIt = (edge: number) => getHost(rig.edges[edge]?.url ?? '', sandbox.getHost(port))
  const serves = async (edge: number) => (await fetchIt(edge)).status === 200
  await until('the server', () => serves(0))

  await node.machine.cut([rig.apiAddress])
  for (const edge of [0, 1]) assert.equal(await serves(edge), true, `edge ${edge} after the cut`)
  await waitForLoss(sandbox)
  for (const edge of [0, 1]) assert.equal(await serves(edge), true, `edge ${edge} after the loss`)
  assert.equal((await readSandboxes(node)).length, 1, 'the node keeps the sandbox')

  await node.machine.heal()
  await waitForSandboxes(node, [])
  for (const edge of [0, 1]) await until('the edge to forget it', async () => !(await serves(edge)))
})
