import { answerChanges } from './changes.ts'
import type { SimulatedChanges } from './changes.ts'
import { failure, page } from './http.ts'
import type { SimulatedRequest, Reply } from './http.ts'
import { findSnapshot, createSnapshot } from './snapshots.ts'
import type { SimulatedSnapshot } from './snapshots.ts'

export interface SimulatedSandbox {
  state: 'running' | 'paused'
  endAt: Date
  /** The body of the create request. */
  readonly body: Record<string, unknown>
  /** Files that the sandbox changed, by path. */
  readonly changes: SimulatedChanges
  /** Replies to the list of connections. The last one stays. */
  readonly connections: unknown[][]
  /** Reply to a request for the lineage. */
  lineage?: object
}

export interface SimulatedState {
  readonly sandboxes: Map<string, SimulatedSandbox>
  readonly snapshots: SimulatedSnapshot[]
  readonly behavior: SimulatedBehavior
}

/** Settings that tests change to provoke failures. */
export interface SimulatedBehavior {
  /** False simulates a runtime that cannot save memory, such as runc. */
  supportsMemory: boolean
  /** Number of forks that succeed; the node is full for the rest. */
  forkCapacity: number
}

export const accessToken = 'token-of-the-sandbox'

export function answerSandboxes(cloud: SimulatedState, request: SimulatedRequest): Reply {
  const [id, action] = request.rest
  if (id === undefined)
    return request.method === 'POST' ? create(cloud, request) : list(cloud, request)
  const sandbox = cloud.sandboxes.get(id)
  if (!sandbox) return failure(404, `Sandbox ${id} not found`)
  if (request.method === 'DELETE') {
    cloud.sandboxes.delete(id)
    return { status: 204 }
  }
  if (action === 'connections') {
    const { connections } = sandbox
    const current = connections.length > 1 ? connections.shift() : connections[0]
    return { status: 200, body: { connections: current ?? [] } }
  }
  if (action === 'lineage') return { status: 200, body: sandbox.lineage ?? {} }
  if (action === 'changes') return answerChanges(sandbox.changes, request)
  if (request.method === 'GET') {
    return { status: 200, body: { ...describeSandbox(id, sandbox), envdAccessToken: accessToken } }
  }
  if (action === 'connect') return connect(id, sandbox, request)
  if (action === 'pause') return pause(cloud, id, request)
  if (sandbox.state === 'paused') return pausedFailure(action === 'fork' ? 409 : 404, id)
  return action === 'fork'
    ? fork(cloud, sandbox, request)
    : createSnapshot(cloud.snapshots, id, request)
}

export function addSandbox({ sandboxes }: SimulatedState, body: Record<string, unknown>): string {
  const id = `i${sandboxes.size}sandbox`
  const timeout = typeof body['timeout'] === 'number' ? body['timeout'] : 300
  const endAt = new Date(Date.now() + timeout * 1000)
  sandboxes.set(id, { state: 'running', endAt, body, changes: new Map(), connections: [] })
  return id
}

function create(cloud: SimulatedState, { body }: SimulatedRequest): Reply {
  const template = String(body['templateID'])
  if (template !== 'base' && !findSnapshot(cloud.snapshots, template)) {
    return failure(404, `Template '${template}' not found`)
  }
  return { status: 201, body: describeConnection(addSandbox(cloud, body)) }
}

function list({ sandboxes }: SimulatedState, { url }: SimulatedRequest): Reply {
  const states = url.searchParams.get('state')?.split(',') ?? ['running', 'paused']
  const matching = [...sandboxes].filter(([, { state }]) => states.includes(state))
  return page(
    matching.map(([id, sandbox]) => describeSandbox(id, sandbox)),
    url,
  )
}

function connect(id: string, sandbox: SimulatedSandbox, { body }: SimulatedRequest): Reply {
  const status = sandbox.state === 'paused' ? 201 : 200
  sandbox.state = 'running'
  const wanted = Date.now() + Number(body['timeout'] ?? 300) * 1000
  sandbox.endAt = new Date(Math.max(sandbox.endAt.getTime(), wanted))
  return { status, body: describeConnection(id) }
}

function pause(
  { sandboxes, behavior }: SimulatedState,
  id: string,
  { body }: SimulatedRequest,
): Reply {
  const sandbox = sandboxes.get(id)
  if (sandbox?.state !== 'running') return pausedFailure(409, id)
  if (!behavior.supportsMemory && body['memory'] !== false) {
    return failure(400, 'The runtime cannot save memory', 'memory_not_kept')
  }
  sandbox.state = 'paused'
  return { status: 204 }
}

function fork(cloud: SimulatedState, source: SimulatedSandbox, { body }: SimulatedRequest): Reply {
  const copy = (_: unknown, index: number) => {
    if (index >= cloud.behavior.forkCapacity)
      return { error: failure(503, 'The node is full').body }
    return { sandbox: describeConnection(addSandbox(cloud, { ...source.body, ...body })) }
  }
  return { status: 201, body: Array.from({ length: Number(body['count'] ?? 1) }, copy) }
}

function pausedFailure(status: number, id: string): Reply {
  return failure(status, `Sandbox ${id} is paused`, 'sandbox_paused')
}

function describeConnection(id: string) {
  return {
    sandboxID: id,
    templateID: 'templateofbase',
    clientID: '6532622b',
    alias: 'base',
    envdVersion: '0.6.13',
    envdAccessToken: accessToken,
  }
}

function describeSandbox(id: string, sandbox: SimulatedSandbox) {
  const { envdAccessToken: _, ...plain } = describeConnection(id)
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
