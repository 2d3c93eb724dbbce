import { Fault } from '@atoll/kit/fault'
import type { Lifecycle } from './lifecycle.ts'
import type { SandboxNetwork } from './network.ts'
import type { Resources } from './template.ts'

/** What the control plane knows of a sandbox, the states it goes through, and the rules of its time. */
export interface Sandbox {
  readonly id: string
  readonly teamId: string
  readonly templateId: string
  readonly buildId: string
  readonly alias: string | undefined
  readonly state: SandboxState
  readonly resources: Resources
  readonly metadata: Readonly<Record<string, string>> | undefined
  /** Whether envd asks for the access token. */
  readonly secure: boolean
  /** What the creator asked for; undefined when they did not say. */
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
  readonly lifecycle: Lifecycle
  /** How long it was to run when it was created; undefined for those of an older Atoll. */
  readonly timeoutSeconds: number | undefined
  readonly createdAt: Date
  /** Which server process is at it, while it is being created, paused, resumed or copied. */
  readonly holder: string | undefined
  /** Which server process is changing what may leave it; what the record says of that is then not sure to be in force. */
  readonly networkHolder: string | undefined
  /** These three are known from `running` on. The end of a paused one is when it was paused. */
  readonly envdVersion: string | undefined
  readonly startedAt: Date | undefined
  readonly endAt: Date | undefined
  /** What a paused one comes back with. */
  readonly kept: Kept | undefined
  /** What it takes on the disk of its node while it is put aside, or is thought to take; undefined while it runs. */
  readonly keptBytes: number | undefined
  /** Why it ends, as words that follow "it": known from `killing` on. */
  readonly endReason: string | undefined
  readonly endedAt: Date | undefined
}

export type Kept = 'memory' | 'files'

export const sandboxStates = [
  'creating',
  'running',
  'pausing',
  'paused',
  'resuming',
  'snapshotting',
  'killing',
  'ended',
] as const

export type SandboxState = (typeof sandboxStates)[number]

export type StartedSandbox = Sandbox & {
  readonly envdVersion: string
  readonly startedAt: Date
  readonly endAt: Date
}

export type RunningSandbox = StartedSandbox & { readonly state: 'running' }

/** The node may say at any time that it has ended, or that it runs or is paused after all. */
const transitions = {
  creating: ['running', 'killing', 'ended'],
  running: ['pausing', 'paused', 'snapshotting', 'killing', 'ended'],
  pausing: ['running', 'paused', 'killing', 'ended'],
  paused: ['running', 'resuming', 'killing', 'ended'],
  resuming: ['running', 'paused', 'killing', 'ended'],
  snapshotting: ['running', 'paused', 'killing', 'ended'],
  killing: ['ended'],
  ended: [],
} as const satisfies Record<SandboxState, readonly SandboxState[]>

/** Those that only last while somebody is at it. */
export const passingStates = ['pausing', 'resuming', 'snapshotting'] as const

/** Those that count towards what a team may have at a time. */
export const placeStates = ['creating', 'running', ...passingStates] as const

/** Those in which it is on the disk of its node for later. */
export const keptStates = ['pausing', 'paused', 'resuming'] as const

export type ShownState = 'running' | 'paused'

/** What its team sees of it. */
const shownStates = {
  creating: undefined,
  running: 'running',
  pausing: 'paused',
  paused: 'paused',
  resuming: 'paused',
  snapshotting: 'running',
  killing: undefined,
  ended: undefined,
} as const satisfies Record<SandboxState, ShownState | undefined>

export function shownState({ state }: Sandbox): ShownState | undefined {
  return shownStates[state]
}

export function statesShownAs(...shown: readonly ShownState[]): SandboxState[] {
  return sandboxStates.filter((state) => shown.some((one) => one === shownStates[state]))
}

export function canBecome(from: SandboxState, to: SandboxState): boolean {
  const allowed: readonly SandboxState[] = transitions[from]
  return allowed.includes(to)
}

export function isRunning(sandbox: Sandbox): sandbox is RunningSandbox {
  return sandbox.state === 'running' && hasStarted(sandbox)
}

/** Whether its team has it: it runs, or can be resumed. */
export function isShown(sandbox: Sandbox): sandbox is StartedSandbox {
  return shownState(sandbox) !== undefined && hasStarted(sandbox)
}

function hasStarted(sandbox: Sandbox): sandbox is StartedSandbox {
  const { envdVersion, startedAt, endAt } = sandbox
  return envdVersion !== undefined && startedAt !== undefined && endAt !== undefined
}

/** It begins to run, for the first time or again: what it may take is counted from here. */
export function start(
  sandbox: Sandbox,
  begin: { readonly now: Date; readonly seconds: number; readonly envdVersion: string },
): RunningSandbox {
  return {
    ...move(sandbox, 'running'),
    state: 'running',
    holder: undefined,
    kept: undefined,
    keptBytes: undefined,
    envdVersion: begin.envdVersion,
    startedAt: begin.now,
    endAt: after(begin.now, begin.seconds),
  }
}

export function beginKill(sandbox: Sandbox, reason: string): Sandbox {
  return { ...move(sandbox, 'killing'), endReason: reason }
}

/** The first reason wins: what a kill set out with is kept. */
export function end(sandbox: Sandbox, now: Date, reason: string): Sandbox {
  const endReason = sandbox.endReason ?? reason
  // Nobody needs the secrets in its rules any more.
  return { ...move(sandbox, 'ended'), endedAt: now, endReason, network: undefined }
}

export function move(sandbox: Sandbox, state: SandboxState): Sandbox {
  if (canBecome(sandbox.state, state)) return { ...sandbox, state }
  throw new Fault(
    'conflict',
    'sandbox_state',
    `Sandbox ${sandbox.id} is ${sandbox.state} and cannot become ${state}`,
  )
}

/** The answer for what is not there. Only the own team's sandboxes are passed in: others look unknown. */
export function absent(id: string, ended?: Sandbox): Fault {
  const reason = ended?.state === 'ended' ? ended.endReason : undefined
  const why = reason === undefined ? '' : `: it ${reason}`
  return new Fault('not_found', 'sandbox_not_found', `Sandbox ${id} was not found${why}`)
}

export function after(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000)
}
