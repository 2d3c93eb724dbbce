import { after, end, isRunning, move, passingStates, start } from './sandbox.ts'
import type { Kept, RunningSandbox, Sandbox } from './sandbox.ts'

/** How a sandbox is put aside, brought back and copied: each has a beginning, which names who is at it, and an end. */

/** `keptBytes` is what it is thought to take. */
export function beginPause(sandbox: RunningSandbox, holder: string, keptBytes: number): Sandbox {
  return { ...move(sandbox, 'pausing'), holder, keptBytes }
}

export function finishPause(sandbox: Sandbox, now: Date, kept: Kept): Sandbox {
  return { ...move(sandbox, 'paused'), holder: undefined, endAt: now, kept }
}

export function beginResume(sandbox: Sandbox, holder: string): Sandbox {
  return { ...move(sandbox, 'resuming'), holder }
}

export function beginSnapshot(sandbox: RunningSandbox, holder: string): Sandbox {
  return { ...move(sandbox, 'snapshotting'), holder }
}

/** It runs on as if nothing had happened. */
export function goOn(sandbox: Sandbox): Sandbox {
  return { ...move(sandbox, 'running'), holder: undefined, keptBytes: undefined }
}

/** Past its end it stays for a little longer, since it could not be put aside. */
export function postpone(sandbox: Sandbox, now: Date, seconds: number): Sandbox {
  return isRunning(sandbox) && sandbox.endAt <= now
    ? { ...sandbox, endAt: after(now, seconds) }
    : sandbox
}

export function isPassing({ state }: Sandbox): boolean {
  return passingStates.some((passing) => passing === state)
}

/**
 * What a node says of one sandbox; undefined when it has no such sandbox. `quarantined`: the node cannot read its record,
 * and keeps its files.
 */
export type OnNode =
  | { readonly state: 'running' | 'paused'; readonly kept: Kept }
  | { readonly state: 'quarantined' }
  | undefined

/** Of a sandbox that is neither being created nor ending. */
export function agrees({ state }: Pick<Sandbox, 'state'>, onNode: OnNode): boolean {
  if (onNode?.state === 'quarantined') return state === 'running' || state === 'paused'
  return state === onNode?.state
}

/**
 * Brings the record of a sandbox that nobody is at together with what its node says. The node is right: it alone knows
 * how far somebody got who is not there any more.
 */
export function agreeWithNode(
  sandbox: Sandbox,
  onNode: OnNode,
  { now, seconds }: { readonly now: Date; readonly seconds: number },
): Sandbox {
  if (agrees(sandbox, onNode)) return sandbox
  if (!onNode) return end(sandbox, now, 'was lost: its node does not have it any more')
  if (onNode.state === 'quarantined') return undo(sandbox, now)
  if (onNode.state === 'paused') {
    const pausedAt = sandbox.state === 'resuming' ? sandbox.endAt : undefined
    return finishPause(sandbox, pausedAt ?? now, onNode.kept)
  }
  // From `paused` or `resuming` it has begun to run again, and nobody has said for how long.
  const { envdVersion } = sandbox
  const wasRunning = sandbox.state === 'pausing' || sandbox.state === 'snapshotting'
  if (wasRunning || envdVersion === undefined) return goOn(sandbox)
  return start(sandbox, { now, seconds, envdVersion })
}

/** Back to the state before a pause, resume or copy that did not happen. */
function undo(sandbox: Sandbox, now: Date): Sandbox {
  if (sandbox.state !== 'resuming') return goOn(sandbox)
  return finishPause(sandbox, sandbox.endAt ?? now, sandbox.kept ?? 'files')
}
