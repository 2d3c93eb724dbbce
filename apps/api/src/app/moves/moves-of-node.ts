import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { isDurable } from '../../domain/sandboxes/sandbox-pause.ts'
import { transitionStates } from '../../domain/sandboxes/sandbox.ts'
import type { NodeView } from '../nodes/nodes.ts'

/** Sandboxes that are left on a node which an operator drains. */
export interface NodeMoves {
  readonly movesSandboxes: boolean
  /** Sandboxes that run, or are about to. */
  readonly running: number
  /** Sandboxes between the pause on this node and the resume on another. */
  readonly moving: number
  readonly paused: number
  /** Paused sandboxes whose content only this node has. */
  readonly notUploaded: number
  /** Running sandboxes that could not be moved. */
  readonly staying: number
  /** Why, for the first ones of them. */
  readonly problems: readonly { readonly sandboxId: string; readonly problem: string }[]
}

export type MovesOfNode = (nodeId: string) => Promise<NodeMoves>

const states = ['creating', 'running', 'paused', ...transitionStates] as const
const shownProblems = 1_000

export function createMovesOfNode(ports: {
  readonly store: Pick<SandboxStore, 'listOfNode'>
  readonly nodes: { get(id: string): Promise<Pick<NodeView, 'movesSandboxes'>> }
}): MovesOfNode {
  return async (nodeId) => {
    const { movesSandboxes } = await ports.nodes.get(nodeId)
    const all = await ports.store.listOfNode(nodeId, states)
    const paused = all.filter(({ state, isMoving }) => state === 'paused' && !isMoving)
    const moving = all.filter(({ isMoving }) => isMoving)
    const problems = all.flatMap(({ id, state, move }) =>
      state === 'running' && move?.kind === 'failed'
        ? [{ sandboxId: id, problem: move.problem }]
        : [],
    )
    return {
      movesSandboxes,
      running: all.length - paused.length - moving.length,
      moving: moving.length,
      paused: paused.length,
      notUploaded: paused.filter((one) => !isDurable(one)).length,
      staying: problems.length,
      problems: problems.slice(0, shownProblems),
    }
  }
}
