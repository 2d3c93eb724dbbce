import { Fault } from '@atoll/kit/fault'
import type { Lifecycle } from './lifecycle.ts'
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
  readonly lifecycle: Lifecycle
  /** How long it was to run when it was created; undefined for those of an older Atoll. */
  readonly timeoutSeconds: number | undefined
  readonly createdAt: Date
  /** Which server process makes it; of no meaning once it runs. */
  readonly creator: string | undefined
  /** These three are known from `running` on. */
  readonly envdVersion: string | undefined
  readonly startedAt: Date | undefined
  readonly endAt: Date | undefined
  /** Why it ends, as words that follow "it": known from `killing` on. */
  readonly endReason: string | undefined
  readonly endedAt: Date | undefined
}

export const sandboxStates = ['creating', 'running', 'killing', 'ended'] as const

export type SandboxState = (typeof sandboxStates)[number]

export type RunningSandbox = Sandbox & {
  readonly state: 'running'
  readonly envdVersion: string
  readonly startedAt: Date
  readonly endAt: Date
}

const transitions = {
  creating: ['running', 'killing', 'ended'],
  running: ['killing', 'ended'],
  killing: ['ended'],
  ended: [],
} as const satisfies Record<SandboxState, readonly SandboxState[]>

export function canBecome(from: SandboxState, to: SandboxState): boolean {
  const allowed: readonly SandboxState[] = transitions[from]
  return allowed.includes(to)
}

export function isRunning(sandbox: Sandbox): sandbox is RunningSandbox {
  return (
    sandbox.state === 'running' &&
    sandbox.envdVersion !== undefined &&
    sandbox.startedAt !== undefined &&
    sandbox.endAt !== undefined
  )
}

/** The first moment of its life: what it may take is counted from here. */
export function start(
  sandbox: Sandbox,
  begin: { readonly now: Date; readonly seconds: number; readonly envdVersion: string },
): RunningSandbox {
  return {
    ...move(sandbox, 'running'),
    state: 'running',
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
  return { ...move(sandbox, 'ended'), endedAt: now, endReason: sandbox.endReason ?? reason }
}

function move(sandbox: Sandbox, state: SandboxState): Sandbox {
  if (canBecome(sandbox.state, state)) return { ...sandbox, state }
  throw new Fault(
    'conflict',
    'sandbox_state',
    `Sandbox ${sandbox.id} is ${sandbox.state} and cannot become ${state}`,
  )
}

/** Ends it `seconds` from now, sooner or later than before; asking for too much gives the most there is. */
export function setTimeoutOf(
  sandbox: RunningSandbox,
  limits: { readonly now: Date; readonly seconds: number; readonly maxSeconds: number },
): RunningSandbox {
  const latest = after(sandbox.startedAt, limits.maxSeconds)
  if (limits.now >= latest) {
    throw new Fault(
      'invalid',
      'max_length_exceeded',
      `Max instance length exceeded: a sandbox may run for ${limits.maxSeconds} seconds at most`,
    )
  }
  const wanted = after(limits.now, limits.seconds)
  return { ...sandbox, endAt: wanted < latest ? wanted : latest }
}

/** Like `setTimeoutOf`, but never takes time away. */
export function extend(
  sandbox: RunningSandbox,
  limits: { readonly now: Date; readonly seconds: number; readonly maxSeconds: number },
): RunningSandbox {
  const changed = setTimeoutOf(sandbox, limits)
  return changed.endAt > sandbox.endAt ? changed : sandbox
}

/** The answer for what is not there. Only the own team's sandboxes are passed in: others look unknown. */
export function absent(id: string, ended?: Sandbox): Fault {
  const reason = ended?.state === 'ended' ? ended.endReason : undefined
  const why = reason === undefined ? '' : `: it ${reason}`
  return new Fault('not_found', 'sandbox_not_found', `Sandbox ${id} was not found${why}`)
}

function after(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000)
}
