import { createServer } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { randomUUID } from 'node:crypto'
import { answerCatalogue } from './catalogue.ts'
import type { SimulatedInstall } from './catalogue.ts'
import { answerRotation } from './encryption.ts'
import { answerKeys } from './keys.ts'
import type { SimulatedKeys } from './keys.ts'
import { answerMembers, answerNodes } from './nodes.ts'
import type { SimulatedNodes } from './nodes.ts'
import { simulatedProcesses } from './processes.ts'
import type { SimulatedProcesses } from './processes.ts'
import { failure, send } from './http.ts'
import type { Reply } from './http.ts'
import { accessToken, addSandbox, answerSandboxes } from './sandboxes.ts'
import type { SimulatedState, SimulatedSandbox } from './sandboxes.ts'
import { answerSecrets } from './secrets.ts'
import type { SimulatedSecrets } from './secrets.ts'
import { answerSnapshots, answerTemplates } from './snapshots.ts'
import type { SimulatedSnapshot } from './snapshots.ts'

/** Simulated server for tests: the platform API in memory, and sandboxes whose processes run on this machine. */
export interface SimulatedCloud extends SimulatedState {
  readonly url: string
  readonly apiKey: string
  readonly adminToken: string
  readonly nodes: SimulatedNodes
  readonly processes: SimulatedProcesses
  /** Requests to the platform API, such as `POST /v2/sandboxes {"templateID":"base"}`. */
  readonly requests: string[]
  readonly catalogue: SimulatedInstall
  readonly secrets: SimulatedSecrets
  /** Adds a running sandbox and returns its ID. */
  addSandbox(): string
  /** Closes all connections, as happens when a sandbox ends. */
  dropConnections(): void
  close(): Promise<void>
}

export async function startSimulatedCloud(): Promise<SimulatedCloud> {
  const cloud = {
    apiKey: `e2b_${randomUUID()}`,
    adminToken: randomUUID(),
    nodes: new Map([
      ['n1', 'ready'],
      ['n2', 'ready'],
    ]),
    processes: simulatedProcesses(),
    sandboxes: new Map<string, SimulatedSandbox>(),
    snapshots: [] as SimulatedSnapshot[],
    behavior: { supportsMemory: true, forkCapacity: Infinity },
    keys: new Map<string, string>(),
    secrets: new Map() as SimulatedSecrets,
    requests: [] as string[],
    catalogue: [{ state: 'absent' }] as SimulatedInstall,
  }
  const sandboxSide = connectNodeAdapter({
    routes: (router) => router.service(Process, cloud.processes.service),
  })
  const server = createServer((request, response) => {
    if (request.headers['svc-sandbox-id'] === undefined) {
      void answer(cloud, request).then((reply) => send(response, reply))
    } else if (request.headers['x-access-token'] === accessToken) {
      sandboxSide(request, response)
    } else {
      send(response, failure(401, 'wrong access token'))
    }
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    ...cloud,
    url: `http://127.0.0.1:${port}`,
    addSandbox: () => addSandbox(cloud, { templateID: 'base' }),
    dropConnections: () => server.closeAllConnections(),
    async close() {
      cloud.processes.killAll()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Cloud extends SimulatedState {
  readonly apiKey: string
  readonly adminToken: string
  readonly nodes: SimulatedNodes
  readonly keys: SimulatedKeys
  readonly requests: string[]
  readonly catalogue: SimulatedInstall
  readonly secrets: SimulatedSecrets
}

async function answer(cloud: Cloud, request: IncomingMessage): Promise<Reply> {
  const text = (await Array.fromAsync(request)).join('')
  const url = new URL(request.url ?? '/', 'http://cloud')
  if (url.pathname === '/health') return { status: 200, body: 'ok' }
  cloud.requests.push(`${request.method} ${url.pathname}${url.search}${text && ` ${text}`}`)
  const [resource, ...rest] = url.pathname.replace(/^(\/v2)?\//, '').split('/')
  const [given, wanted] =
    resource === 'nodes' || resource === 'admin' || resource === 'fleet'
      ? [request.headers['x-admin-token'], cloud.adminToken]
      : [request.headers['x-api-key'], cloud.apiKey]
  if (given !== wanted) return failure(401, 'Invalid API key')
  const body: Record<string, unknown> = text ? JSON.parse(text) : {}
  const simulated = { method: request.method ?? 'GET', url, rest, body }
  switch (resource) {
    case 'sandboxes':
      return answerSandboxes(cloud, simulated)
    case 'snapshots':
      return answerSnapshots(cloud.snapshots, simulated)
    case 'templates':
      return answerTemplates(cloud.snapshots, simulated)
    case 'catalogue':
      return answerCatalogue(cloud.catalogue, simulated)
    case 'secrets':
      return answerSecrets(cloud.secrets, simulated)
    case 'nodes':
      return answerNodes(cloud.nodes, simulated)
    case 'fleet':
      return answerMembers(cloud.nodes, simulated)
    case 'admin':
      return answerRotation(simulated)
    case 'api-keys':
      return answerKeys(cloud.keys, simulated)
    default:
      return failure(404, `there is no ${url.pathname}`)
  }
}
