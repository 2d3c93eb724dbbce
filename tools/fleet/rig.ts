/**
 * A fleet on this machine: PostgreSQL, apis on the host, edges and nodes each in a network namespace of their own.
 * `npm run fleet` and the fleet tests start it.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ensureKeyFile } from '@atoll/kit/encryption/key-file'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { atollProgram } from '../bundle/programs.mjs'
import { startPostgres } from '../postgres.ts'
import type { PostgresServer } from '../postgres.ts'
import { createFolder, nodeSettings, removeAbandoned, removeRig } from './folder.ts'
import { openNetwork } from './network.ts'
import type { Machine } from './network.ts'
import { createPart, thisRelease } from './part.ts'
import type { Part } from './part.ts'

export interface RigApi extends Part {
  readonly url: string
}

export interface RigEdge extends Part {
  readonly url: string
  readonly machine: Machine
}

export interface RigNode extends Part {
  readonly id: string
  readonly machine: Machine
  readonly dataDir: string
}

export interface Rig extends AsyncDisposable {
  readonly apis: readonly RigApi[]
  readonly edges: readonly RigEdge[]
  readonly nodes: readonly RigNode[]
  readonly apiKey: string
  readonly adminToken: string
  readonly database: Pick<PostgresServer, 'stop' | 'restart'>
  /** Address of the machine that the apis run on. */
  readonly apiAddress: string
  /** All parts. */
  readonly parts: readonly Part[]
}

export interface RigOptions {
  readonly apis?: number
  readonly edges?: number
  readonly nodes?: number
  /** Folder of the release that all parts run. Default: this one. */
  readonly release?: string
  /** Starts the database. Default: one PostgreSQL that loses no commit when it is killed. */
  readonly startDatabase?: () => Promise<PostgresServer>
  /** Settings of all parts. */
  readonly settings?: Readonly<Record<string, string>>
  /** Starts what the nodes need on the host, which they reach at this address. Returns more settings of all parts. */
  readonly prepare?: (hostAddress: string) => Promise<Readonly<Record<string, string>>>
  readonly progress?: (label: string, fraction: number) => void
  /** Receives the output of all parts. */
  readonly onOutput?: (text: string, part: string) => void
}

const clientPort = 3000
const nodePort = 3310
const joinLimitMs = 120_000

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const { apis: apiCount = 2, edges: edgeCount = 2, nodes: nodeCount = 3 } = options
  const { progress = () => {} } = options
  const steps = 2 + apiCount + edgeCount + nodeCount
  let done = 0
  const step = async <T>(label: string, work: () => Promise<T>): Promise<T> => {
    progress(label, done / steps)
    const result = await work()
    done += 1
    return result
  }
  await using started = new AsyncDisposableStack()
  await removeAbandoned((id) => progress(`removing the rig ${id}, which was killed`, 0))
  const folder = await createFolder()
  started.defer(() => removeRig(folder))
  const { startDatabase = () => startPostgres({ synchronous_commit: 'on' }) } = options
  const postgres = await step('starting PostgreSQL', startDatabase)
  started.defer(() => postgres.close())
  const network = await openNetwork(folder.id)
  const settings = { ...options.settings, ...(await options.prepare?.(network.hostAddress)) }
  const context = await createContext(folder.path, network.hostAddress, { ...options, settings })
  const begin = async <T extends Part>(part: T): Promise<T> => {
    started.defer(() => part.stop('SIGTERM'))
    await part.start()
    return part
  }

  const apis: RigApi[] = []
  for (let index = 1; index <= apiCount; index += 1) {
    const api = await createApi(context, `api-${index}`, `${postgres.url}/postgres`)
    context.fleetApis.push(api.fleetAddress)
    apis.push(await step(`starting api ${index}`, () => begin(api)))
    context.apiUrl ??= api.url
  }
  const credentials = await readFile(join(folder.path, 'api-1/credentials.json'), 'utf8')
  const { apiKey }: { apiKey: string } = JSON.parse(credentials)
  const nodes: RigNode[] = []
  for (let index = 1; index <= nodeCount; index += 1) {
    const machine = await network.addMachine(`node-${index}`)
    nodes.push(
      await step(`starting node ${index}`, async () => begin(await joinNode(context, machine))),
    )
  }
  const edges: RigEdge[] = []
  for (let index = 1; index <= edgeCount; index += 1) {
    const machine = await network.addMachine(`edge-${index}`)
    edges.push(
      await step(`starting edge ${index}`, async () => begin(await joinEdge(context, machine))),
    )
  }
  const rig = {
    ...{ apis, edges, nodes, apiKey, adminToken: context.adminToken, database: postgres },
    apiAddress: network.hostAddress,
    parts: [...apis, ...edges, ...nodes],
  }
  await step('waiting for the nodes', () => waitForNodes(rig))
  const owned = started.move()
  return { ...rig, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Waits until every api lists all nodes as ready. */
export async function waitForNodes(
  rig: Pick<Rig, 'apis' | 'nodes' | 'adminToken'>,
  limitMs = 120_000,
): Promise<void> {
  for (const { url } of rig.apis) {
    const isReady = async () => {
      const nodes = await listNodes(url, rig.adminToken).catch(() => [])
      return nodes.filter(({ status }) => status === 'ready').length === rig.nodes.length
    }
    const limits = { timeoutMs: limitMs, intervalMs: 200 }
    await waitFor(`${rig.nodes.length} ready nodes on ${url}`, isReady, limits)
  }
}

interface ListedNode {
  readonly id: string
  readonly status: string
  readonly sandboxCount: number
}

async function listNodes(apiUrl: string, adminToken: string): Promise<ListedNode[]> {
  const headers = { 'x-admin-token': adminToken }
  const reply = await fetch(`${apiUrl}/nodes`, { headers, signal: AbortSignal.timeout(20_000) })
  if (!reply.ok) throw new Error(`GET /nodes answers ${reply.status}: ${await reply.text()}`)
  return JSON.parse(await reply.text())
}

interface Context {
  readonly folder: string
  readonly adminToken: string
  readonly hostAddress: string
  readonly options: RigOptions
  readonly keyFile: string
  /** Internal addresses of the apis that were created so far. */
  readonly fleetApis: string[]
  apiUrl: string | undefined
}

async function createContext(
  folder: string,
  hostAddress: string,
  options: RigOptions,
): Promise<Context> {
  const keyFile = join(folder, 'encryption-keys')
  await ensureKeyFile({ path: keyFile, isSupplied: false })
  const adminToken = randomBytes(16).toString('hex')
  return { folder, adminToken, hostAddress, options, keyFile, fleetApis: [], apiUrl: undefined }
}

function environmentOf(context: Context, own: Record<string, string>): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ATOLL_ADMIN_TOKEN: context.adminToken,
    ...(context.apiUrl !== undefined && { ATOLL_API_URL: context.apiUrl }),
    ATOLL_FLEET_APIS: context.fleetApis.join(','),
    ATOLL_BASE_MEMORY_MB: '256',
    ...own,
    ...context.options.settings,
  }
}

async function createApi(context: Context, name: string, database: string) {
  const { hostAddress, options, keyFile } = context
  const [port, fleetPort] = [await freePort(), await freePort()]
  const fleetAddress = `${hostAddress}:${fleetPort}`
  const env = environmentOf(context, {
    ATOLL_DATA_DIR: join(context.folder, name),
    ATOLL_DATABASE_URL: database,
    // All apis need the same keys.
    ATOLL_ENCRYPTION_KEY_FILE: keyFile,
    ATOLL_LISTEN: `127.0.0.1:${port}`,
    ATOLL_FLEET_LISTEN: fleetAddress,
  })
  const part = createPart({
    ...{ args: ['api'], env, ready: 'The api is running' },
    ...commonOptions(options, name),
  })
  return { ...part, name, url: `http://127.0.0.1:${port}`, fleetAddress }
}

async function joinNode(context: Context, machine: Machine): Promise<RigNode> {
  const dataDir = join(context.folder, machine.name)
  const env = environmentOf(context, {
    ...nodeSettings(dataDir),
    ATOLL_FLEET_LISTEN: `${machine.address}:${nodePort}`,
  })
  const id = await joinFleet(context, 'node', { machine, env })
  const { enter, name } = machine
  const ready = 'is running on'
  const part = createPart({
    ...{ args: ['node', 'run'], env, ready, enter },
    ...commonOptions(context.options, name),
  })
  return { ...part, name, id, machine, dataDir }
}

async function joinEdge(context: Context, machine: Machine): Promise<RigEdge> {
  const env = environmentOf(context, {
    ATOLL_DATA_DIR: join(context.folder, machine.name),
    ATOLL_LISTEN: `${machine.address}:${clientPort}`,
  })
  await joinFleet(context, 'edge', { machine, env })
  const { enter, name } = machine
  const ready = 'The edge is running'
  const part = createPart({
    ...{ args: ['edge', 'run'], env, ready, enter },
    ...commonOptions(context.options, name),
  })
  return { ...part, name, machine, url: `http://${machine.address}:${clientPort}` }
}

/** Returns the ID of the new member. */
async function joinFleet(
  context: Context,
  role: 'edge' | 'node',
  { machine, env }: { readonly machine: Machine; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  await mkdir(env['ATOLL_DATA_DIR'] ?? '', { recursive: true, mode: 0o700 })
  const atoll = (enter: readonly string[], args: readonly string[]) => {
    const main = atollProgram(context.options.release ?? thisRelease)
    const [program = '', ...rest] = [...enter, process.execPath, main, ...args]
    return run(program, rest, { env, timeoutMs: joinLimitMs })
  }
  const token = (await atoll([], [role, 'token'])).trim()
  const [api = ''] = context.fleetApis
  await atoll(machine.enter, [role, 'join', api, '--token', token])
  const identity = await readFile(join(env['ATOLL_DATA_DIR'] ?? '', 'fleet-identity.json'), 'utf8')
  const { id }: { id: string } = JSON.parse(identity)
  return id
}

function commonOptions({ onOutput, release }: RigOptions, part: string) {
  return {
    ...(onOutput && { onOutput: (text: string) => onOutput(text, part) }),
    ...(release !== undefined && { release }),
  }
}
