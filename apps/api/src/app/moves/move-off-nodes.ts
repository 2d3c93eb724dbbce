/**
 * Moves running sandboxes off nodes that an operator drains: a pause on the old node, an upload, a resume on another one.
 * The record says what was begun, so that any api finishes what one that died has left.
 */
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { limitConcurrency } from '@atoll/kit/limit-concurrency'
import type { Logger } from '@atoll/kit/log'
import type { NodeStore } from '../../domain/node-record.ts'
import {
  endAfterMove,
  failMove,
  isMoveDue,
  isMoving,
  retryTime,
} from '../../domain/sandboxes/sandbox-move.ts'
import { isDurable } from '../../domain/sandboxes/sandbox-pause.ts'
import { absent, isRunning } from '../../domain/sandboxes/sandbox.ts'
import type { Sandbox } from '../../domain/sandboxes/sandbox.ts'
import type { MovingSandbox, SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { Fleet } from '../nodes/fleet.ts'
import type { Placing } from '../nodes/placing.ts'
import { changedMeanwhile } from '../sandboxes/move-sandbox.ts'
import type { Pausing } from '../sandboxes/pause-sandbox.ts'
import type { StartSandbox } from '../sandboxes/start-sandbox.ts'
import type { EstimateSize } from '../snapshots/estimate-size.ts'
import { findObstacle } from './obstacles.ts'
import { createRetries } from './retries.ts'
import type { WaitForUpload } from './wait-for-upload.ts'

export interface MovePorts {
  readonly store: Pick<SandboxStore, 'find' | 'update' | 'listOfNode' | 'listMoving'>
  readonly nodes: Pick<NodeStore, 'listMoving' | 'listStatuses'>
  readonly fleet: Fleet
  readonly placing: Pick<Placing, 'conditionOf' | 'noteStatus' | 'hasRoom'>
  readonly pausing: Pick<Pausing, 'pauseToMove'>
  readonly start: StartSandbox
  readonly waitForUpload: WaitForUpload
  readonly estimateSize: EstimateSize
  readonly clock: Clock
  readonly log: Logger
}

export interface Moves {
  /** Begins and finishes what is to be done. Returns the milliseconds until the next pass. */
  pass(signal: AbortSignal): Promise<number>
  /** Resolves when no move is under way in this process. */
  settle(): Promise<void>
}

const intervalMs = 2_000
/** Each move reads and writes the memory of a sandbox, on nodes that also serve others. */
const movesAtOnce = 4
const retryMs = { leastMs: 5_000, mostMs: 60_000 }

export function createMoves(ports: MovePorts): Moves {
  const { store, nodes, fleet, placing, log } = ports
  const underway = new Map<string, Promise<void>>()
  const retries = createRetries(retryMs)
  const limited = limitConcurrency(movesAtOnce)

  const run = (id: string, move: () => Promise<void>): void => {
    if (underway.has(id) || !retries.isDue(id)) return
    const done = limited(move)
      .then(() => retries.succeeded(id))
      .catch((error: unknown) => {
        retries.failed(id)
        log.warn({ err: error, sandboxId: id }, 'a move of a sandbox failed; it is tried again')
      })
      .finally(() => underway.delete(id))
    underway.set(id, done)
  }
  return {
    async pass(signal) {
      retries.prune()
      for (const moving of await store.listMoving())
        if (canFinish(ports, moving)) run(moving.id, () => finishMove(ports, moving.id, signal))
      const draining = await nodes.listMoving()
      // Another api may have set a status, and this one may not know yet.
      for (const { id, status } of draining.length > 0 ? await nodes.listStatuses() : [])
        placing.noteStatus(id, status)
      for (const nodeId of draining) {
        if (!fleet.reaches(nodeId)) continue
        const now = ports.clock.now()
        for (const sandbox of await store.listOfNode(nodeId, ['running']))
          if (isMoveDue(sandbox, now)) run(sandbox.id, () => moveOff(ports, sandbox, signal))
      }
      return intervalMs
    },
    async settle() {
      await Promise.all(underway.values())
    },
  }
}

interface Place {
  readonly id: string
  readonly nodeId: string
}

async function moveOff(ports: MovePorts, place: Place, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { pausing, clock } = ports
  const obstacle = findObstacle(ports, place.nodeId, await ports.estimateSize(place))
  if (obstacle !== undefined) return noteProblem(ports, place, { problem: obstacle })
  const began = clock.now()
  try {
    if (!(await pausing.pauseToMove(place.id, place.nodeId))) return
  } catch (error) {
    const breakMs = clock.now().getTime() - began.getTime()
    return noteProblem(ports, place, { problem: Fault.from(error).message, breakMs })
  }
  return finishMove(ports, place.id, signal)
}

/** Only the node has content that is not uploaded: without the node, an attempt would change the record for nothing. */
function canFinish({ placing }: MovePorts, moving: MovingSandbox): boolean {
  return moving.isDurable || placing.conditionOf(moving.nodeId) !== 'gone'
}

/** Resumes a sandbox that was paused for a move. A sandbox that a client has resumed, paused or killed since is left alone. */
async function finishMove(ports: MovePorts, id: string, signal: AbortSignal): Promise<void> {
  const { clock } = ports
  const sandbox = await ports.waitForUpload(id, signal)
  // The next api to look finishes it.
  if (signal.aborted || sandbox?.state !== 'paused') return
  const { nodeId, teamId, move, endAt: pausedAt = clock.now() } = sandbox
  if (!isMoving(sandbox) || move?.kind !== 'underway') return
  if (!canFinish(ports, { id, nodeId, isDurable: isDurable(sandbox) })) return
  let problem: string | undefined
  const breakMs = () => clock.now().getTime() - pausedAt.getTime()
  const now = clock.now()
  const endAt = endAfterMove(move.endAt, now)
  const { sandbox: running } = await ports.start(id, {
    teamId,
    seconds: (endAt.getTime() - now.getTime()) / 1000,
    boot: false,
    move: {
      endAt,
      onStay: (reason) => void (problem = reason.message),
      // In the same write: otherwise another api could pause the sandbox again at once.
      finish: (current) =>
        problem === undefined
          ? current
          : failMove(current, problem, retryTime(clock.now(), breakMs())),
    },
    onRunning: (current) => current,
    checkPaused: checkMoving,
    killed: absent,
  })
  if (running.nodeId === nodeId && problem !== undefined) {
    // A second note could follow a new drain request, which forgets the first one.
    if (running.move?.kind === 'failed') return logStay(ports, { id, nodeId }, problem)
    return noteProblem(ports, { id, nodeId }, { problem, breakMs: breakMs() })
  }
  const event = { event: 'sandbox.move', sandboxId: id, from: nodeId, to: running.nodeId }
  ports.log.info(event)
}

/** A client may have resumed and paused the sandbox since: then it stays paused. */
function checkMoving(current: Sandbox): void {
  if (!isMoving(current)) throw changedMeanwhile(current.id)
}

async function noteProblem(
  ports: MovePorts,
  { id, nodeId }: Place,
  { problem, breakMs }: { readonly problem: string; readonly breakMs?: number },
): Promise<void> {
  const { store, clock } = ports
  await store.update<Sandbox>(id, (current) =>
    isRunning(current) && current.nodeId === nodeId
      ? failMove(current, problem, retryTime(clock.now(), breakMs))
      : current,
  )
  logStay(ports, { id, nodeId }, problem)
}

function logStay({ log }: MovePorts, { id, nodeId }: Place, problem: string): void {
  log.warn({ event: 'sandbox.stay', sandboxId: id, nodeId, problem })
}
