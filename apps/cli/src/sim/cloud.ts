import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Process } from '@atoll/contracts/gen/process/process_pb'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { randomUUID } from 'node:crypto'
import { simulatedProcesses } from './processes.ts'
import type { SimulatedProcesses } from './processes.ts'

/** A cloud for tests of the command line: the platform API from memory, sandboxes whose processes run right here. */
export interface SimulatedCloud {
  readonly url: string
  readonly apiKey: string
  readonly processes: SimulatedProcesses
  readonly sandboxes: Map<string, SimulatedSandbox>
  /** What was asked of the platform, as `POST /v2/sandboxes {"templateID":"base"}`. */
  readonly requests: string[]
  /** A sandbox as `POST /v2/sandboxes` makes it; gives its id. */
  addSandbox(): string
  /** Cuts all connections, as the end of a sandbox does. */
  cut(): void
  close(): Promise<void>
}

interface SimulatedSandbox {
  state: 'running' | 'paused'
  endAt: Date
  readonly body: Record<string, unknown>
}

const accessToken = 'token-of-the-sandbox'

export async function startSimulatedCloud(): Promise<SimulatedCloud> {
  const cloud = {
    apiKey: `e2b_${randomUUID()}`,
    processes: simulatedProcesses(),
    sandboxes: new Map<string, SimulatedSandbox>(),
    keys: new Map<string, string>(),
    requests: [] as string[],
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
    addSandbox: () => add(cloud, { templateID: 'base' }),
    cut: () => server.closeAllConnections(),
    async close() {
      cloud.processes.killAll()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Reply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

interface Cloud {
  readonly apiKey: string
  readonly sandboxes: Map<string, SimulatedSandbox>
  readonly keys: Map<string, string>
  readonly requests: string[]
}

async function answer(cloud: Cloud, request: IncomingMessage): Promise<Reply> {
  const text = (await Array.fromAsync(request)).join('')
  const url = new URL(request.url ?? '/', 'http://cloud')
  const body: Record<string, unknown> = text ? JSON.parse(text) : {}
  if (url.pathname === '/health') return { status: 200, body: 'ok' }
  cloud.requests.push(`${request.method} ${url.pathname}${url.search}${text && ` ${text}`}`)
  if (request.headers['x-api-key'] !== cloud.apiKey) return failure(401, 'Invalid API key')
  const [, first = '', id] = /^(?:\/v2)?\/([a-z-]+)(?:\/([^/]+))?/.exec(url.pathname) ?? []
  if (first === 'api-keys') return answerKeys(cloud, request.method, id, body)
  if (id !== undefined) return answerOne(cloud, `${request.method}`, id, body)
  return request.method === 'POST' ? create(cloud, body) : list(cloud, url)
}

function create(cloud: Cloud, body: Record<string, unknown>): Reply {
  const template = String(body['templateID'])
  if (template !== 'base') return failure(404, `Template '${template}' not found`)
  return { status: 201, body: connected(add(cloud, body)) }
}

function add({ sandboxes }: Cloud, body: Record<string, unknown>): string {
  const id = `i${sandboxes.size}sandbox`
  const timeout = typeof body['timeout'] === 'number' ? body['timeout'] : 300
  sandboxes.set(id, { state: 'running', endAt: new Date(Date.now() + timeout * 1000), body })
  return id
}

/** Two a page, so that a list of three needs a second one. */
function list(cloud: Cloud, url: URL): Reply {
  const states = url.searchParams.get('state')?.split(',') ?? ['running', 'paused']
  const skip = Number(url.searchParams.get('nextToken') ?? 0)
  const matching = [...cloud.sandboxes].filter(([, { state }]) => states.includes(state))
  const headers = matching.length > skip + 2 ? { 'x-next-token': String(skip + 2) } : {}
  const body = matching.slice(skip, skip + 2).map(([id, sandbox]) => shown(id, sandbox))
  return { status: 200, body, headers }
}

function answerOne(cloud: Cloud, method: string, id: string, body: Record<string, unknown>): Reply {
  const sandbox = cloud.sandboxes.get(id)
  if (!sandbox) return failure(404, `Sandbox ${id} not found`)
  if (method === 'DELETE') {
    cloud.sandboxes.delete(id)
    return { status: 204 }
  }
  if (method === 'GET') {
    return { status: 200, body: { ...shown(id, sandbox), envdAccessToken: accessToken } }
  }
  sandbox.state = 'running'
  const wanted = Date.now() + Number(body['timeout'] ?? 300) * 1000
  sandbox.endAt = new Date(Math.max(sandbox.endAt.getTime(), wanted))
  return { status: 200, body: connected(id) }
}

function answerKeys(
  { keys }: Cloud,
  method: string | undefined,
  id: string | undefined,
  body: Record<string, unknown>,
): Reply {
  if (method === 'GET')
    return { status: 200, body: [...keys].map(([key, name]) => shownKey(key, name)) }
  if (method === 'DELETE') {
    return keys.delete(id ?? '') ? { status: 204 } : failure(404, `API key ${id} not found`)
  }
  const created = randomUUID()
  keys.set(created, String(body['name']))
  return { status: 201, body: { ...shownKey(created, String(body['name'])), key: 'e2b_new' } }
}

function connected(id: string) {
  return {
    sandboxID: id,
    templateID: 'templateofbase',
    clientID: '6532622b',
    alias: 'base',
    envdVersion: '0.6.13',
    envdAccessToken: accessToken,
  }
}

function shown(id: string, sandbox: SimulatedSandbox) {
  const { envdAccessToken: _, ...plain } = connected(id)
  return {
    ...plain,
    state: sandbox.state,
    startedAt: new Date(Date.now() - 3_600_000).toISOString(),
    endAt: sandbox.endAt.toISOString(),
    cpuCount: 2,
    memoryMB: 512,
    diskSizeMB: 1024,
    lifecycle: { autoResume: false, onTimeout: 'kill' },
  }
}

function shownKey(id: string, name: string) {
  const mask = {
    prefix: 'e2b_',
    valueLength: 40,
    maskedValuePrefix: '12',
    maskedValueSuffix: '89ab',
  }
  return { id, name, mask, createdAt: new Date().toISOString(), createdBy: null, lastUsed: null }
}

function failure(code: number, message: string): Reply {
  return { status: code, body: { code, message } }
}

function send(response: ServerResponse, { status, body, headers }: Reply): void {
  response.writeHead(status, headers)
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}
