import type { RunningSandbox, Sandbox, SandboxMove, SandboxState } from './sandbox.ts'

/** Limits how long the sandbox is paused by moves that fail: to a tenth of the time. */
const retryMs = { least: 60_000, forEachMsOfBreak: 10 }

/** Returns when the next attempt may begin. `breakMs`: how long the sandbox was paused by this one. */
export function retryTime(now: Date, breakMs = 0): Date {
  return new Date(now.getTime() + Math.max(retryMs.least, breakMs * retryMs.forEachMsOfBreak))
}

/** A sandbox whose timeout ended during the move gets this time, and then ends as it would have. */
const leastSeconds = 30

/** Returns the end time of a sandbox that is resumed by its move, `wantedEnd` being the one from before the move. */
export function endAfterMove(wantedEnd: Date, now: Date): Date {
  return new Date(Math.max(wantedEnd.getTime(), now.getTime() + leastSeconds * 1000))
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

/** Returns the rest of the run time of a sandbox that is being moved, and 0 for others. */
export function secondsLeft(sandbox: Sandbox, now: Date): number {
  const { move } = sandbox
  if (move?.kind !== 'underway' || !isMoving(sandbox)) return 0
  return Math.max(0, (move.endAt.getTime() - now.getTime()) / 1000)
}

/** Leaves a sandbox paused that would be resumed at the end of its move. */
export function cancelMove(sandbox: Sandbox): Sandbox {
  return { ...sandbox, move: undefined }
}

/** Notes why a running sandbox stays on its node. */
export function failMove(sandbox: RunningSandbox, problem: string, retryAt: Date): RunningSandbox {
  return { ...sandbox, move: { kind: 'failed', generation: sandbox.generation, problem, retryAt } }
}
