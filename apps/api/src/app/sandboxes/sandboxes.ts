import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { absent, isRunning, isShown, statesShownAs } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox, StartedSandbox } from '../../domain/sandboxes/sandbox.ts'
import { isInTransition } from '../../domain/sandboxes/sandbox-pause.ts'
import { extend, setTimeoutOf } from '../../domain/sandboxes/sandbox-time.ts'
import type { SandboxFilter, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { OnEndChanged } from '../end-changes.ts'
import type { Ending } from './ending.ts'
import { listSandboxes } from './list-sandboxes.ts'
import type { ListRequest, SandboxList } from './list-sandboxes.ts'
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

const shortestRefreshSeconds = 15

interface SandboxPorts {
  readonly store: SandboxStore
  readonly templates: TemplateStore
  readonly ending: Ending
  readonly clock: Clock
  readonly limitsOf: LimitsOf
  readonly start: StartSandbox
  /** Called when the end time of a sandbox has changed. */
  readonly onEndChanged: OnEndChanged
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
    list: (request) => listSandboxes(ports, request),
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
    onEndChanged(changed)
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
