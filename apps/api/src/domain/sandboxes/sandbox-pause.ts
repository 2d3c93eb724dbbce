import { after, end, isRunning, move, transitionStates, start } from './sandbox.ts'
import type { Kept, RunningSandbox, Sandbox, SandboxMove } from './sandbox.ts'
import { endAfterMove, isMoving, retryTime } from './sandbox-move.ts'

/** State changes for pause, resume and snapshot. Each operation has a begin, which sets the holder, and an end. */

/** `keptBytes` is the estimated size on disk. */
export function beginPause(sandbox: RunningSandbox, holder: string, keptBytes: number): Sandbox {
  return { ...move(sandbox, 'pausing'), holder, keptBytes, move: undefined }
}

/** Begins the pause of a move. */
export function beginMove(
  sandbox: RunningSandbox,
  begin: { readonly holder: string; readonly keptBytes: number; readonly now: Date },
): Sandbox {
  const { generation, endAt } = sandbox
  // Noted before the pause: a pause that fails, in whichever way, is not begun again at once.
  const retryAt = retryTime(begin.now)
  const underway: SandboxMove = { kind: 'underway', generation, endAt, retryAt }
  return { ...beginPause(sandbox, begin.holder, begin.keptBytes), move: underway }
}

export function finishPause(sandbox: Sandbox, now: Date, kept: Kept): Sandbox {
  // A resume that failed has raised the generation, but its content is that of the pause before.
  const { state, generation, keptGeneration, keptId, durableGeneration } = sandbox
  const content =
    state === 'resuming'
      ? { keptGeneration, keptId, durableGeneration }
      : { keptGeneration: generation, keptId: undefined, durableGeneration: undefined }
  const storedGeneration = content.keptGeneration ?? sandbox.storedGeneration
  const paused = { ...move(sandbox, 'paused'), ...content, storedGeneration }
  return { ...paused, holder: undefined, endAt: now, kept }
}

/**
 * Takes over what the node says about the content of a paused sandbox. An older Atoll version pauses without changing these
 * fields, so the record may name content that is not the newest. A node whose data was restored from a backup may have
 * older content than the object store: then the record stays, and the next resume fetches the newer content.
 */
export function noteContent(sandbox: Sandbox, found: KeptContent): Sandbox {
  const { keptGeneration, keptId, isDurable: isUploaded = false } = found
  if (isOutdated(sandbox, found)) return sandbox
  const known = isSameContent(sandbox, found) ? sandbox.durableGeneration : undefined
  const durableGeneration = isUploaded ? keptGeneration : known
  const storedGeneration = keptGeneration ?? sandbox.storedGeneration
  return { ...sandbox, keptGeneration, keptId, durableGeneration, storedGeneration }
}

/** Whether the node has older content than the object store. */
export function isOutdated(sandbox: KeptRecord, { keptGeneration }: KeptContent): boolean {
  const isOlder = keptGeneration !== undefined && keptGeneration < (sandbox.keptGeneration ?? 0)
  return isOlder && isDurable(sandbox)
}

/** Contents with the same generation are different ones if their pauses had different IDs. */
export function isSameContent(
  { keptGeneration, keptId }: Pick<KeptContent, 'keptGeneration' | 'keptId'>,
  other: Pick<KeptContent, 'keptGeneration' | 'keptId'>,
): boolean {
  return keptGeneration === other.keptGeneration && keptId === other.keptId
}

/** Whether any node can continue the sandbox from the object store. */
export function isDurable({ state, keptGeneration, durableGeneration }: KeptRecord): boolean {
  const isKept = state === 'paused' || state === 'resuming'
  return isKept && keptGeneration !== undefined && keptGeneration === durableGeneration
}

type KeptRecord = Pick<Sandbox, 'state' | 'keptGeneration' | 'durableGeneration'>

/**
 * Takes back a kill that no client asked for, such as that of a timeout: the node has the sandbox paused, so the record is older
 * than the pause. A record that never said `running` cannot be resumed, so it ends, and the node keeps the files.
 */
export function takeBackKill(sandbox: Sandbox, found: PausedOnNode, now: Date): Sandbox {
  if (sandbox.state !== 'killing' || sandbox.isKillRequested) return sandbox
  if (sandbox.startedAt === undefined) return end(sandbox, now, 'was never finished')
  const generation = Math.max(sandbox.generation, found.generation)
  const paused = finishPause({ ...sandbox, generation }, now, found.kept)
  return noteContent({ ...paused, endReason: undefined }, found)
}

/** Returns to `paused` after a resume that did not happen. */
export function backToPaused(sandbox: Sandbox, now: Date): Sandbox {
  return finishPause(sandbox, sandbox.endAt ?? now, sandbox.kept ?? 'files')
}

/** Raises the generation: from now on, the node refuses calls that were meant for the time before the pause. */
export function beginResume(sandbox: Sandbox, holder: string): Sandbox {
  return { ...move(sandbox, 'resuming'), holder, generation: sandbox.generation + 1 }
}

export function beginSnapshot(sandbox: RunningSandbox, holder: string): Sandbox {
  return { ...move(sandbox, 'snapshotting'), holder }
}

/** Returns to `running` after a snapshot or a pause that did not happen. */
export function backToRunning(sandbox: Sandbox): Sandbox {
  return { ...move(sandbox, 'running'), holder: undefined, keptBytes: undefined }
}

/** Extends the timeout of an expired sandbox that could not be paused. */
export function postpone(sandbox: Sandbox, now: Date, seconds: number): Sandbox {
  return isRunning(sandbox) && sandbox.endAt <= now
    ? { ...sandbox, endAt: after(now, seconds) }
    : sandbox
}

export function isInTransition({ state }: Sandbox): boolean {
  return transitionStates.some((transition) => transition === state)
}

/**
 * State of a sandbox on its node; undefined if the node does not have the sandbox. `quarantined`: the node cannot read
 * the record, and keeps the files.
 */
export type OnNode = RunningOnNode | PausedOnNode | { readonly state: 'quarantined' } | undefined

interface ReadableOnNode extends KeptContent {
  readonly kept: Kept
  readonly generation: number
}

interface RunningOnNode extends ReadableOnNode {
  readonly state: 'running'
  /** Whether a pause is in progress. */
  readonly isPausing?: boolean
}

export interface PausedOnNode extends ReadableOnNode {
  readonly state: 'paused'
}

export interface KeptContent {
  /** Generation that was paused, which identifies the kept content. Undefined while running, and if unknown. */
  readonly keptGeneration?: number | undefined
  /** Random ID of the pause. Undefined if it has none. */
  readonly keptId?: string | undefined
  /** Whether the object store has the kept content. */
  readonly isDurable?: boolean
}

/** Not for sandboxes that are being created or killed. */
export function agrees(
  { state, generation }: Pick<Sandbox, 'state' | 'generation'>,
  onNode: OnNode,
): boolean {
  if (onNode?.state === 'quarantined') return state === 'running' || state === 'paused'
  return state === onNode?.state && onNode.generation <= generation
}

/** Times of a sandbox that turns out to be resumed. */
export interface ResumeTimes {
  readonly now: Date
  readonly seconds: number
  /** Whether a client has asked for this run time. Otherwise a sandbox that was being moved keeps its own times. */
  readonly isRequested?: boolean
}

/**
 * Reconciles the record of a sandbox without a live holder with the state on its node. The node wins: only the node
 * knows how far a crashed holder got.
 */
export function reconcileWithNode(sandbox: Sandbox, onNode: OnNode, begin: ResumeTimes): Sandbox {
  const { now } = begin
  if (agrees(sandbox, onNode)) return sandbox
  if (!onNode && isDurable(sandbox)) return undo(sandbox, now)
  if (!onNode) return end(sandbox, now, 'was lost: its node does not have it any more')
  if (onNode.state === 'quarantined') return undo(sandbox, now)
  // The record is behind its node only if the store was restored from a backup.
  const generation = Math.max(sandbox.generation, onNode.generation)
  const raised = { ...sandbox, generation }
  if (sandbox.state === onNode.state) return raised
  return takeState(raised, onNode, begin)
}

function takeState(
  sandbox: Sandbox,
  onNode: Exclude<NonNullable<OnNode>, { readonly state: 'quarantined' }>,
  { now, seconds, isRequested = false }: ResumeTimes,
): Sandbox {
  if (onNode.state === 'paused') {
    const pausedAt = sandbox.state === 'resuming' ? sandbox.endAt : undefined
    return noteContent(finishPause(sandbox, pausedAt ?? now, onNode.kept), onNode)
  }
  // The sandbox resumed from `paused` or `resuming`, so it needs a new timeout.
  const { envdVersion } = sandbox
  const wasRunning = sandbox.state === 'pausing' || sandbox.state === 'snapshotting'
  if (wasRunning || envdVersion === undefined) return backToRunning(sandbox)
  const started = start(sandbox, { now, seconds, envdVersion })
  const { move: underway, startedAt = now } = sandbox
  const isMoved = !isRequested && underway?.kind === 'underway' && isMoving(sandbox)
  return isMoved ? { ...started, startedAt, endAt: endAfterMove(underway.endAt, now) } : started
}

/** Returns to the state before a pause, resume or snapshot that did not happen. */
function undo(sandbox: Sandbox, now: Date): Sandbox {
  if (sandbox.state === 'paused') return sandbox
  return sandbox.state === 'resuming' ? backToPaused(sandbox, now) : backToRunning(sandbox)
}
