import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { Sandbox } from 'e2b'
import { createPart } from '../../../tools/fleet/part.ts'
import type { Part } from '../../../tools/fleet/part.ts'
import { startPostgres } from '../../../tools/postgres.ts'
import { atoll, createEnvironment } from '../installation.ts'
import { shell } from '../shell.ts'

/** A fleet of three processes on this machine: an api with PostgreSQL, an edge, and a node that runs gVisor. */

const cleanup = new AsyncDisposableStack()
const adminToken = randomBytes(16).toString('hex')
let api: Part
let edge: Part
let node: Part
let nodeEnv: NodeJS.ProcessEnv
let connection: { apiUrl: string; sandboxUrl: string; apiKey: string }

async function createDataDir(part: string): Promise<string> {
  const dataDir = await mkdtemp(`/var/tmp/atoll-test-fleet-${part}-`)
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  return dataDir
}

async function joinFleet(role: 'edge' | 'node', env: NodeJS.ProcessEnv, fleetApi: string) {
  const token = (await run(atoll, [role, 'token'], { env })).trim()
  await run(atoll, [role, 'join', fleetApi, '--token', token], { env })
}

async function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: string,
): Promise<Part> {
  const part = createPart({ args, env, ready })
  cleanup.defer(() => part.stop('SIGTERM'))
  await part.start()
  return part
}

before(async () => {
  const postgres = await startPostgres()
  cleanup.defer(() => postgres.close())
  const [apiPort, edgePort] = [await freePort(), await freePort()]
  const [fleetApi, fleetNode] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const apiUrl = `http://127.0.0.1:${apiPort}`
  const common = { ATOLL_ADMIN_TOKEN: adminToken, ATOLL_API_URL: apiUrl }
  const apiDir = await createDataDir('api')
  const apiEnv = createEnvironment(apiDir, {
    ...common,
    ATOLL_DATABASE_URL: `${postgres.url}/postgres`,
    ATOLL_LISTEN: `127.0.0.1:${apiPort}`,
    ATOLL_FLEET_LISTEN: fleetApi,
    ATOLL_BASE_MEMORY_MB: '256',
  })
  api = await start(['api'], apiEnv, 'The api is running')
  const { apiKey } = JSON.parse(await readFile(join(apiDir, 'credentials.json'), 'utf8'))
  connection = { apiUrl, sandboxUrl: `http://127.0.0.1:${edgePort}`, apiKey }

  nodeEnv = createEnvironment(await createDataDir('node'), {
    ...common,
    ATOLL_FLEET_LISTEN: fleetNode,
    ATOLL_BASE_MEMORY_MB: '256',
  })
  await joinFleet('node', nodeEnv, fleetApi)
  cleanup.defer(async () => void (await run(atoll, ['down'], { env: nodeEnv })))
  node = await start(['node', 'run'], nodeEnv, 'is running on')

  const edgeEnv = createEnvironment(await createDataDir('edge'), {
    ...common,
    ATOLL_LISTEN: `127.0.0.1:${edgePort}`,
  })
  await joinFleet('edge', edgeEnv, fleetApi)
  edge = await start(['edge', 'run'], edgeEnv, 'The edge is running')
  await waitFor('the node to be listed', async () =>
    (await run(atoll, ['node', 'list'], { env: apiEnv })).includes('ready'),
  )
})
after(() => cleanup.disposeAsync())

const createSandbox = () => Sandbox.create('base', { ...connection, timeoutMs: 600_000 })

const isAlive = (pid: number) => `kill -0 ${pid} && echo alive`

/** Repeats the command until the sandbox is reachable again. */
function waitForShell(sandbox: Sandbox, command: string): Promise<string> {
  return waitFor(command, () =>
    shell(sandbox, command).then(
      ({ stdout }) => stdout,
      () => undefined,
    ),
  )
}

test('the SDK creates a sandbox through the api and reaches it through the edge', async () => {
  const sandbox = await createSandbox()
  assert.equal((await shell(sandbox, 'hostname')).stdout.trim(), sandbox.sandboxId)
  const bytes = randomBytes(8 * 2 ** 20)
  await sandbox.files.write('/tmp/bytes', new Blob([bytes]))
  const expected = createHash('sha256').update(bytes).digest('hex')
  assert.match((await shell(sandbox, 'sha256sum /tmp/bytes')).stdout, new RegExp(`^${expected} `))
  const read = await sandbox.files.read('/tmp/bytes', { format: 'bytes' })
  assert.equal(createHash('sha256').update(read).digest('hex'), expected)
  await sandbox.kill()
  await assert.rejects(shell(sandbox, 'true'))
})

test('a paused sandbox resumes with its memory', async () => {
  const sandbox = await createSandbox()
  const { pid } = await sandbox.commands.run('sleep infinity', { background: true, timeoutMs: 0 })
  await sandbox.pause()
  await sandbox.connect()
  assert.equal((await shell(sandbox, isAlive(pid))).stdout, 'alive\n')
  await sandbox.kill()
})

test('a sandbox keeps running when the node agent, the api and the edge are killed', async () => {
  const sandbox = await createSandbox()
  const { pid } = await sandbox.commands.run('sleep infinity', { background: true, timeoutMs: 0 })
  assert.equal((await shell(sandbox, isAlive(pid))).stdout, 'alive\n')

  await node.stop('SIGKILL')
  await node.start()
  assert.equal(await waitForShell(sandbox, isAlive(pid)), 'alive\n')

  await api.stop('SIGKILL')
  // The edge may still have to ask the restarted node for its sandboxes.
  assert.equal(await waitForShell(sandbox, isAlive(pid)), 'alive\n', 'without an api')
  await api.start()

  await edge.stop('SIGKILL')
  await edge.start()
  assert.equal(await waitForShell(sandbox, isAlive(pid)), 'alive\n')
  await waitFor('the api to reach the node', () =>
    sandbox.kill().then(
      () => true,
      () => false,
    ),
  )
})
