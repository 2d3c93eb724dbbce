import { Fault } from '@atoll/kit/fault'
import type { Lifecycle } from './lifecycle.ts'
import type { SandboxNetwork } from '../network/network.ts'
import type { Resources } from '../template.ts'

/** Sandbox record of the control plane. */
export interface Sandbox {
  readonly id: string
  /** Node that has the sandbox. Empty in records of old Atoll versions until their node claims them. */
  readonly nodeId: string
  /** Number of starts, raised before each create and resume. The node refuses calls for an older one. */
  readonly generation: number
  readonly teamId: string
  readonly templateId: string
  readonly buildId: string
  readonly alias: string | undefined
  /** Undefined for sandboxes of templates, and for those created by old Atoll versions. */
  readonly parent: SandboxParent | undefined
  readonly state: SandboxState
  readonly resources: Resources
  readonly metadata: Readonly<Record<string, string>> | undefined
  /** Whether envd requires the access token. */
  readonly secure: boolean
  /** Request of the creator; undefined if not specified. */
  readonly allowInternetAccess: boolean | undefined
  readonly network: SandboxNetwork | undefined
  readonly lifecycle: Lifecycle
  /** Timeout at creation; undefined for sandboxes created by old Atoll versions. */
  readonly timeoutSeconds: number | undefined
  readonly createdAt: Date
  /** Server process that creates, pauses, resumes or snapshots the sandbox. */
  readonly holder: string | undefined
  /**
   * Server process that changes the egress rules. Until the change ends, the recorded rules may not be in force yet.
   */
  readonly networkHolder: string | undefined
  /**
   * Set from `running` on, like the next two fields. `endAt` is the timeout, or the time of the pause for a paused
   * sandbox.
   */
  readonly envdVersion: string | undefined
  readonly startedAt: Date | undefined
  readonly endAt: Date | undefined
  /** State that a resume restores. */
  readonly kept: Kept | undefined
  /** Measured or estimated size on the disk of the node while paused; undefined while running. */
  readonly keptBytes: number | undefined
  /** Generation that was paused: it identifies the kept content. Undefined while running, and if unknown. */
  readonly keptGeneration: number | undefined
  /**
   * Random ID of the pause, as the node last said: generations repeat when the store is restored from a backup. Undefined
   * while running, until the node was asked, and for pauses of old Atoll versions.
   */
  readonly keptId: string | undefined
  /**
   * Generation whose content the object store has, as its node last said. The kept content is durable only if both are
   * the same.
   */
  readonly durableGeneration: number | undefined
  /** Move off a drained node. */
  readonly move?: SandboxMove | undefined
  /**
   * Newest generation that was ever paused: its content, or older ones, may be in the object store. Undefined again once
   * the objects of an ended sandbox are being deleted.
   */
  readonly storedGeneration: number | undefined
  /**
   * Whether a client or an operator asked for the end. Then the sandbox is deleted wherever a node has it, also if it is
   * paused. Without a request, the record may be older than a pause.
   */
  readonly isKillRequested?: boolean | undefined
  /** Reason for the end, phrased to follow "it". Set from `killing` on. */
  readonly endReason: string | undefined
  readonly endedAt: Date | undefined
}

/**
 * A move is a pause on one node and a resume on another. `underway`: the sandbox was running until `endAt` or longer, so it is
 * resumed by itself. It counts only while `generation` is that of the pause: a later start has ended it.
 */
export type SandboxMove = (
  | { readonly kind: 'underway'; readonly endAt: Date }
  | { readonly kind: 'failed'; readonly problem: string }
) & {
  readonly generation: number
  /** No api begins the next attempt before. Undefined in records of old Atoll versions. */
  readonly retryAt?: Date | undefined
}

/** Sandbox of the same team whose copy a sandbox began as. Its record may be deleted already. */
export interface SandboxParent {
  readonly id: string
  readonly kind: 'fork' | 'snapshot'
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

/**
 * Includes transitions that the node can report at any time: ended, or running or paused after all. A kill that no client asked
 * for is taken back if the node has the sandbox paused.
 */
const transitions = {
  creating: ['running', 'killing', 'ended'],
  running: ['pausing', 'paused', 'snapshotting', 'killing', 'ended'],
  pausing: ['running', 'paused', 'killing', 'ended'],
  paused: ['running', 'resuming', 'killing', 'ended'],
  resuming: ['running', 'paused', 'killing', 'ended'],
  snapshotting: ['running', 'paused', 'killing', 'ended'],
  killing: ['paused', 'ended'],
  ended: [],
} as const satisfies Record<SandboxState, readonly SandboxState[]>

/** Transient states, which last only while a process works on the sandbox. */
export const transitionStates = ['pausing', 'resuming', 'snapshotting'] as const

/** States that count towards the concurrency limit of a team. */
export const placeStates = ['creating', 'running', ...transitionStates] as const

/** States in which the sandbox is stored on the disk of its node. */
export const keptStates = ['pausing', 'paused', 'resuming'] as const

export type ShownState = 'running' | 'paused'

/** State in lists, which can include ended sandboxes. */
export type ListedState = ShownState | 'ended'

/** State in API responses; undefined hides the sandbox. */
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

export function shownState({ state }: Pick<Sandbox, 'state'>): ShownState | undefined {
  return shownStates[state]
}

export function statesShownAs(...shown: readonly ListedState[]): SandboxState[] {
  return sandboxStates.filter((state) =>
    shown.some((one) => one === (state === 'ended' ? state : shownStates[state])),
  )
}

export function canBecome(from: SandboxState, to: SandboxState): boolean {
  const allowed: readonly SandboxState[] = transitions[from]
  return allowed.includes(to)
}

export function isRunning(sandbox: Sandbox): sandbox is RunningSandbox {
  return sandbox.state === 'running' && hasStarted(sandbox)
}

/** Whether the team can see the sandbox: running, or can be resumed. */
export function isShown(sandbox: Sandbox): sandbox is StartedSandbox {
  return shownState(sandbox) !== undefined && hasStarted(sandbox)
}

/** Whether a list of the team may have the sandbox. */
export function isListed(sandbox: Sandbox): sandbox is StartedSandbox {
  return isShown(sandbox) || (sandbox.state === 'ended' && hasStarted(sandbox))
}

function hasStarted(sandbox: Sandbox): sandbox is StartedSandbox {
  const { envdVersion, startedAt, endAt } = sandbox
  return envdVersion !== undefined && startedAt !== undefined && endAt !== undefined
}

/** Moves to `running`, for the first time or after a pause. The maximum run time counts from here. */
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
    keptGeneration: undefined,
    keptId: undefined,
    durableGeneration: undefined,
    move: undefined,
    envdVersion: begin.envdVersion,
    startedAt: begin.now,
    endAt: after(begin.now, begin.seconds),
  }
}

export function beginKill(sandbox: Sandbox, reason: string): Sandbox {
  return { ...move(sandbox, 'killing'), endReason: reason }
}

/** Begins a kill that a client or an operator asked for, or joins one that has begun. Returns an ended sandbox as it is. */
export function requestKill(sandbox: Sandbox, reason: string): Sandbox {
  if (sandbox.state === 'ended' || sandbox.isKillRequested) return sandbox
  const killing = sandbox.state === 'killing' ? sandbox : beginKill(sandbox, reason)
  return { ...killing, isKillRequested: true }
}

/** Keeps the reason of an earlier `beginKill`. */
export function end(sandbox: Sandbox, now: Date, reason: string): Sandbox {
  const endReason = sandbox.endReason ?? reason
  // Drop the network settings, which can contain secrets.
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

/**
 * Fault for a missing sandbox. Pass `ended` only if the team of the caller owns it: sandboxes of other teams must look
 * unknown.
 */
export function absent(id: string, ended?: Sandbox): Fault {
  const reason = ended?.state === 'ended' ? ended.endReason : undefined
  const why = reason === undefined ? '' : `: it ${reason}`
  return new Fault('not_found', 'sandbox_not_found', `Sandbox ${id} was not found${why}`)
}

export function after(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000)
}
