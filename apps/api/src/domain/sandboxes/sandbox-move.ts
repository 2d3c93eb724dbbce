import { beginPause } from './sandbox-pause.ts'
import type { RunningSandbox, Sandbox, SandboxMove, SandboxState } from './sandbox.ts'

/** Begins the pause of a move. */
export function beginMove(sandbox: RunningSandbox, holder: string, keptBytes: number): Sandbox {
  const { generation, endAt } = sandbox
  const move: SandboxMove = { kind: 'underway', generation, endAt }
  return { ...beginPause(sandbox, holder, keptBytes), move }
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
export function failMove(sandbox: RunningSandbox, problem: string): RunningSandbox {
  return { ...sandbox, move: { kind: 'failed', generation: sandbox.generation, problem } }
}
