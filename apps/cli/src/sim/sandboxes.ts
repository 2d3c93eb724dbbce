import { failure, page } from './reply.ts'
import type { Asked, Reply } from './reply.ts'
import { findSnapshot, keepSnapshot } from './snapshots.ts'
import type { SimulatedSnapshot } from './snapshots.ts'

export interface SimulatedSandbox {
  state: 'running' | 'paused'
  endAt: Date
  /** What it was created with. */
  readonly body: Record<string, unknown>
}

/** The part of the simulated cloud that these operations work on. */
export interface SandboxWorld {
  readonly sandboxes: Map<string, SimulatedSandbox>
  readonly snapshots: SimulatedSnapshot[]
  readonly rules: SimulatedRules
}

/** What a test may set to have things go another way. */
export interface SimulatedRules {
  /** False: as under a runtime that keeps files alone. */
  keepsMemory: boolean
  /** How many copies of a fork there is room for. */
  roomForCopies: number
}

export const accessToken = 'token-of-the-sandbox'

export function answerSandboxes(world: SandboxWorld, asked: Asked): Reply {
  const [id, action] = asked.rest
  if (id === undefined) return asked.method === 'POST' ? create(world, asked) : list(world, asked)
  const sandbox = world.sandboxes.get(id)
  if (!sandbox) return failure(404, `Sandbox ${id} not found`)
  if (asked.method === 'DELETE') {
    world.sandboxes.delete(id)
    return { status: 204 }
  }
  if (asked.method === 'GET') {
    return { status: 200, body: { ...shown(id, sandbox), envdAccessToken: accessToken } }
  }
  if (action === 'connect') return connect(id, sandbox, asked)
  if (action === 'pause') return pause(world, id, asked)
  if (sandbox.state === 'paused') return paused(action === 'fork' ? 409 : 404, id)
  return action === 'fork' ? fork(world, sandbox, asked) : keepSnapshot(world.snapshots, id, asked)
}

export function addSandbox({ sandboxes }: SandboxWorld, body: Record<string, unknown>): string {
  const id = `i${sandboxes.size}sandbox`
  const timeout = typeof body['timeout'] === 'number' ? body['timeout'] : 300
  sandboxes.set(id, { state: 'running', endAt: new Date(Date.now() + timeout * 1000), body })
  return id
}

function create(world: SandboxWorld, { body }: Asked): Reply {
  const template = String(body['templateID'])
  if (template !== 'base' && !findSnapshot(world.snapshots, template)) {
    return failure(404, `Template '${template}' not found`)
  }
  return { status: 201, body: connected(addSandbox(world, body)) }
}

function list({ sandboxes }: SandboxWorld, { url }: Asked): Reply {
  const states = url.searchParams.get('state')?.split(',') ?? ['running', 'paused']
  const matching = [...sandboxes].filter(([, { state }]) => states.includes(state))
  return page(
    matching.map(([id, sandbox]) => shown(id, sandbox)),
    url,
  )
}

function connect(id: string, sandbox: SimulatedSandbox, { body }: Asked): Reply {
  const status = sandbox.state === 'paused' ? 201 : 200
  sandbox.state = 'running'
  const wanted = Date.now() + Number(body['timeout'] ?? 300) * 1000
  sandbox.endAt = new Date(Math.max(sandbox.endAt.getTime(), wanted))
  return { status, body: connected(id) }
}

function pause({ sandboxes, rules }: SandboxWorld, id: string, { body }: Asked): Reply {
  const sandbox = sandboxes.get(id)
  if (sandbox?.state !== 'running') return paused(409, id)
  if (!rules.keepsMemory && body['memory'] !== false) {
    return failure(400, 'The runtime keeps files alone', 'memory_not_kept')
  }
  sandbox.state = 'paused'
  return { status: 204 }
}

function fork(world: SandboxWorld, source: SimulatedSandbox, { body }: Asked): Reply {
  const copy = (_: unknown, index: number) => {
    if (index >= world.rules.roomForCopies) return { error: failure(503, 'The node is full').body }
    return { sandbox: connected(addSandbox(world, { ...source.body, ...body })) }
  }
  return { status: 201, body: Array.from({ length: Number(body['count'] ?? 1) }, copy) }
}

function paused(status: number, id: string): Reply {
  return failure(status, `Sandbox ${id} is paused`, 'sandbox_paused')
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
