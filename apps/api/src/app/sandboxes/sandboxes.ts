import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { fromToken, toToken } from '../../domain/paging.ts'
import { absent, isRunning, isShown, statesShownAs } from '../../domain/sandboxes/sandbox.ts'
import type {
  RunningSandbox,
  Sandbox,
  ListedState,
  StartedSandbox,
} from '../../domain/sandboxes/sandbox.ts'
import { isInTransition } from '../../domain/sandboxes/sandbox-pause.ts'
import { extend, setTimeoutOf } from '../../domain/sandboxes/sandbox-time.ts'
import type { Order } from '../../domain/paging.ts'
import type { SandboxFilter, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { Ending } from './ending.ts'
import { findTemplateId } from '../templates/find-template.ts'
import type { LimitsOf } from '../teams/limits.ts'
import type { Started, StartSandbox } from './start-sandbox.ts'
import { beingKilled, inTransition } from './transitions.ts'

/** Operations on a team's existing sandboxes. Sandboxes of other teams are reported as not found. */
export interface Sandboxes {
  get(teamId: string, id: string): Promise<StartedSandbox>
  /** Lists running sandboxes. */
  listAll(filter: Omit<SandboxFilter, 'states'>): Promise<StartedSandbox[]>
  list(request: ListRequest): Promise<SandboxList>
  kill(teamId: string, id: string): Promise<void>
  setTimeout(teamId: string, id: string, seconds: number): Promise<void>
  /** Extends the timeout to at least 15 seconds from now; never shortens it. */
  refresh(teamId: string, id: string, seconds: number): Promise<void>
  /** Resumes a paused sandbox, or extends the timeout of a running one; never shortens it. */
  connect(teamId: string, id: string, request: ConnectRequest): Promise<Started>
  /** Resumes a paused sandbox; throws a `conflict` fault when it is already running. */
  resume(teamId: string, id: string, request: ResumeRequest): Promise<RunningSandbox>
}

export interface ConnectRequest {
  readonly seconds: number
  /** False boots from the files even if memory was kept. */
  readonly memory: boolean
}

export interface ResumeRequest extends ConnectRequest {
  readonly autoPause: boolean | undefined
}

export interface ListRequest extends Omit<SandboxFilter, 'templateId' | 'states'> {
  readonly template: string | undefined
  readonly states: readonly ListedState[]
  readonly order: Order
  readonly limit: number
  readonly nextToken: string | undefined
}

export interface SandboxList {
  readonly sandboxes: readonly StartedSandbox[]
  readonly nextToken?: string
  /** Absent when the request did not ask for running sandboxes. */
  readonly totalRunning?: number
}

const shortestRefreshSeconds = 15

interface SandboxPorts {
  readonly store: SandboxStore
  readonly templates: TemplateStore
  readonly ending: Ending
  readonly clock: Clock
  readonly limitsOf: LimitsOf
  readonly start: StartSandbox
  /** Called when the end time of a sandbox has changed. */
  readonly onEndChanged: () => void
}

export function createSandboxes(ports: SandboxPorts): Sandboxes {
  const { store, ending } = ports
  return {
    async get(teamId, id) {
      const sandbox = await store.find(id)
      if (sandbox?.teamId !== teamId) throw absent(id)
      if (!isShown(sandbox)) throw absent(id, sandbox)
      return sandbox
    },
    listAll: (filter) => store.list({ ...filter, states: statesShownAs('running') }),
    list: (request) => list(ports, request),
    async kill(teamId, id) {
      const sandbox = await store.find(id)
      if (sandbox?.teamId !== teamId) throw absent(id)
      if (sandbox.state === 'creating' || sandbox.state === 'ended') throw absent(id, sandbox)
      await ending.kill(id, 'was killed')
    },
    ...createTimeoutChanges(ports),
    ...createStarts(ports),
  }
}

function createTimeoutChanges({
  store,
  clock,
  limitsOf,
  onEndChanged,
}: SandboxPorts): Pick<Sandboxes, 'setTimeout' | 'refresh'> {
  const change = async (
    teamId: string,
    id: string,
    apply: (current: RunningSandbox) => RunningSandbox,
  ): Promise<void> => {
    const changed = await store.update(id, (current) => {
      if (current.teamId !== teamId) throw absent(id)
      checkChangeable(current)
      return apply(current)
    })
    if (!changed) throw absent(id)
    onEndChanged()
  }
  return {
    async setTimeout(teamId, id, seconds) {
      const { maxSandboxSeconds: maxSeconds } = await limitsOf(teamId)
      await change(teamId, id, (current) =>
        setTimeoutOf(current, { now: clock.now(), seconds, maxSeconds }),
      )
    },
    async refresh(teamId, id, seconds) {
      const { maxSandboxSeconds: maxSeconds } = await limitsOf(teamId)
      const atLeast = Math.max(seconds, shortestRefreshSeconds)
      await change(teamId, id, (current) =>
        extend(current, { now: clock.now(), seconds: atLeast, maxSeconds }),
      )
    },
  }
}

function createStarts({
  clock,
  limitsOf,
  start,
}: SandboxPorts): Pick<Sandboxes, 'connect' | 'resume'> {
  return {
    async connect(teamId, id, { seconds, memory }) {
      const { maxSandboxSeconds: maxSeconds } = await limitsOf(teamId)
      checkSeconds(seconds, maxSeconds)
      return start(id, {
        teamId,
        seconds,
        boot: !memory,
        onRunning: (current) => extend(current, { now: clock.now(), seconds, maxSeconds }),
        killed: beingKilled,
      })
    },
    async resume(teamId, id, { seconds, memory, autoPause }) {
      const { maxSandboxSeconds } = await limitsOf(teamId)
      checkTimeout(seconds, maxSandboxSeconds)
      const { sandbox } = await start(id, {
        teamId,
        seconds,
        boot: !memory,
        autoPause,
        onRunning: () => {
          throw new Fault('conflict', 'sandbox_running', `Sandbox ${id} is already running`)
        },
        checkTransition: (current) => {
          if (current.state === 'snapshotting') throw inTransition(current)
        },
        killed: absent,
      })
      return sandbox
    },
  }
}

/** Throws a fault, depending on the state, when the sandbox is not running. */
export function checkChangeable(sandbox: Sandbox): asserts sandbox is RunningSandbox {
  const { id, state } = sandbox
  if (state === 'killing') throw beingKilled(id)
  if (isInTransition(sandbox)) throw inTransition(sandbox)
  if (state === 'paused') {
    throw new Fault(
      'not_found',
      'sandbox_paused',
      `Sandbox ${id} is paused: resume it with POST /sandboxes/${id}/connect first`,
    )
  }
  if (!isRunning(sandbox)) throw absent(id, sandbox)
}

export function checkTimeout(seconds: number, maxSeconds: number): void {
  if (seconds < 1) {
    throw new Fault('invalid', 'invalid_timeout', 'timeout must be at least 1 second')
  }
  checkSeconds(seconds, maxSeconds)
}

function checkSeconds(seconds: number, maxSeconds: number): void {
  if (seconds <= maxSeconds) return
  throw new Fault(
    'invalid',
    'invalid_timeout',
    `timeout must be at most ${maxSeconds} seconds, the longest that a sandbox may run`,
  )
}

async function list(
  deps: { readonly store: SandboxStore; readonly templates: TemplateStore },
  request: ListRequest,
): Promise<SandboxList> {
  const { template, states, order, limit, nextToken, ...rest } = request
  const after = nextToken === undefined ? undefined : fromToken(nextToken, order)
  const templateId =
    template === undefined
      ? undefined
      : ((await findTemplateId(deps.templates, template, request.teamId)) ?? null)
  const isRunningAsked = states.includes('running')
  if (templateId === null) return { sandboxes: [], ...(isRunningAsked && { totalRunning: 0 }) }
  const filter = { ...rest, templateId, states: statesShownAs(...states) }
  // Read one row more than the limit to see whether there is another page.
  const found = await deps.store.list(filter, { order, limit: limit + 1, after })
  const sandboxes = found.slice(0, limit)
  const last = sandboxes.at(-1)
  const running = { ...filter, states: statesShownAs('running') }
  return {
    sandboxes,
    ...(isRunningAsked && { totalRunning: await deps.store.count(running) }),
    ...(last && found.length > limit && { nextToken: toToken(last, order) }),
  }
}
