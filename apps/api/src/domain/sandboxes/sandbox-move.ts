import { beginPause } from './sandbox-pause.ts'
import type { RunningSandbox, Sandbox, SandboxMove, SandboxState } from './sandbox.ts'

/** Limits how long the sandbox is paused by moves that fail: to a tenth of the time. */
const retryMs = { least: 60_000, forEachMsOfBreak: 10 }

/** Returns when the next attempt may begin. `breakMs`: how long the sandbox was paused by this one. */
export function retryTime(now: Date, breakMs = 0): Date {
  return new Date(now.getTime() + Math.max(retryMs.least, breakMs * retryMs.forEachMsOfBreak))
}

/** Begins the pause of a move. */
export function beginMove(
  sandbox: RunningSandbox,
  begin: { readonly holder: string; readonly keptBytes: number; readonly now: Date },
): Sandbox {
  const { generation, endAt } = sandbox
  // Noted before the pause: a pause that fails, in whichever way, is not begun again at once.
  const retryAt = retryTime(begin.now)
  const move: SandboxMove = { kind: 'underway', generation, endAt, retryAt }
  return { ...beginPause(sandbox, begin.holder, begin.keptBytes), move }
}

/** Whether a move of the running sandbox may begin. */
export function isMoveDue(
  { generation, move }: Pick<Sandbox, 'generation' | 'move'>,
  now: Date,
): boolean {
  return move?.generation !== generation || !move.retryAt || move.retryAt <= now
}

/** Whether the sandbox is between the pause and the resume of a move. */
export function isMoving({ state, move, generation, keptGeneration }: MoveState): boolean {
  if (move?.kind !== 'underway') return false
  if (state === 'pausing') return move.generation === generation
  return (state === 'paused' || state === 'resuming') && move.generation === keptGeneration
}

interface MoveState {
  readonly state: SandboxState
  readonly generation: number
  readonly keptGeneration: number | undefined
  readonly move?: Pick<SandboxMove, 'kind' | 'generation'> | undefined
}

/** Leaves a sandbox paused that would be resumed at the end of its move. */
export function cancelMove(sandbox: Sandbox): Sandbox {
  return { ...sandbox, move: undefined }
}

/** Notes why a running sandbox stays on its node. */
export function failMove(sandbox: RunningSandbox, problem: string, retryAt: Date): RunningSandbox {
  return { ...sandbox, move: { kind: 'failed', generation: sandbox.generation, problem, retryAt } }
}
