import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { tooManySandboxes } from '../../domain/teams/limits.ts'
import type { NetworkAccessOf } from '../../domain/network/network.ts'
import { absent, isRunning, start } from '../../domain/sandboxes/sandbox.ts'
import type { RunningSandbox, Sandbox } from '../../domain/sandboxes/sandbox.ts'
import { beginResume, isDurable } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import type { OnEndChanged } from '../end-changes.ts'
import type { Ending } from './ending.ts'
import type { Fleet } from '../nodes/fleet.ts'
import { changedMeanwhile, resumeOrFetch } from './move-sandbox.ts'
import type { MoveIfNeeded } from './move-sandbox.ts'
import type { LimitsOf } from '../teams/limits.ts'
import type { Settle } from './settle.ts'
import { inTransition } from './transitions.ts'
import type { Transitions } from './transitions.ts'

/**
 * The only way from paused to running. The request decides what happens when the sandbox is already running or in
 * transition. Concurrent callers join a start in progress.
 */
export type StartSandbox = (id: string, request: StartRequest) => Promise<Started>

export interface StartRequest {
  readonly teamId: string
  /** Run time in seconds. */
  readonly seconds: number
  /** Boots from the files even if memory was kept. */
  readonly boot: boolean
  /** Overrides the setting from the create request. */
  readonly autoPause?: boolean | undefined
  /** Called when the sandbox is already running: returns the new record or throws a fault. */
  onRunning(current: RunningSandbox): RunningSandbox
  /** Throws a fault when the paused sandbox must not be started. */
  checkPaused?(current: Sandbox): void
  /** Throws a fault when the caller does not want to wait for this transition. */
  checkTransition?(current: Sandbox): void
  /**
   * Set at the end of a move: the sandbox keeps its start time and gets this end time. The limit of the team does not count,
   * since the sandbox was running before. `onStay` receives why it stays on its node. `finish` changes the record of the running
   * sandbox, in the same write.
   */
  readonly move?:
    | {
        readonly endAt: Date
        onStay(reason: Fault): void
        finish(running: RunningSandbox): RunningSandbox
      }
    | undefined
  /** Creates the fault for a sandbox that is being killed. */
  killed(id: string): Fault
}

export interface Started {
  readonly sandbox: RunningSandbox
  /** Whether the sandbox was paused before. */
  readonly isResumed: boolean
}

export interface StartPorts {
  readonly store: SandboxStore
  readonly fleet: Fleet
  readonly clock: Clock
  readonly ending: Ending
  readonly transitions: Transitions
  readonly settle: Settle
  readonly moveIfNeeded: MoveIfNeeded
  readonly limitsOf: LimitsOf
  readonly tokenOf: (sandbox: Sandbox) => string | undefined
  readonly networkAccessOf: NetworkAccessOf
  readonly processId: string
  readonly onEndChanged: OnEndChanged
}

/** Limits on the state changes and the time that a caller waits through. */
const changeLimit = 3
const waitLimitMs = 60_000
const startLimitMs = 60_000

interface Underway {
  readonly boots: boolean
  readonly running: Promise<RunningSandbox>
}

export function createStartSandbox(ports: StartPorts): StartSandbox {
  const { transitions } = ports
  const starts = new Map<string, Underway>()

  const resumeClaimed = (claimed: Sandbox, request: StartRequest): Promise<RunningSandbox> => {
    const { id } = claimed
    const running = resume(ports, claimed, request).finally(() => starts.delete(id))
    starts.set(id, { boots: boots(claimed, request), running })
    return running
  }
  const join = async (
    current: Sandbox,
    { boot }: StartRequest,
    wait: () => Promise<unknown>,
  ): Promise<void> => {
    const known = starts.get(current.id)
    if (boot && !(known?.boots ?? current.kept === 'files')) throw startInFlight(current.id)
    if (known) await known.running
    else await wait()
  }

  return (id, request) =>
    transitions.during(id, async (changeFrom) => {
      const limit = AbortSignal.timeout(waitLimitMs)
      let isResumed = false
      for (let changes = 0; ; changes += 1) {
        const { current, isOurs } = await claimIfPaused(ports, id, request)
        if (isOurs) return { sandbox: await resumeClaimed(current, request), isResumed: true }
        if (isRunning(current)) {
          ports.onEndChanged(current)
          return { sandbox: current, isResumed }
        }
        if (changes === changeLimit) throw inTransition(current)
        if (current.state === 'resuming') {
          await join(current, request, () => changeFrom('resuming', limit))
          isResumed = true
        } else {
          await changeFrom(current.state, limit)
        }
      }
    })
}

interface ClaimResult {
  readonly current: Sandbox
  /** Whether the sandbox was paused and this call now owns its start. */
  readonly isOurs: boolean
}

/**
 * Reads the record and claims a paused sandbox. Counts against the concurrency limit only when the sandbox is paused:
 * `updateCounted` waits for other starts of the team.
 */
async function claimIfPaused(
  ports: StartPorts,
  id: string,
  request: StartRequest,
): Promise<ClaimResult> {
  const { store, limitsOf, processId } = ports
  const current = await store.update<Sandbox>(id, (found) => checkClaimable(found, request))
  if (!current) throw absent(id)
  if (current.state !== 'paused') return { current, isOurs: false }
  const limits = await limitsOf(request.teamId)
  let isOurs = false
  const claimed = await store.updateCounted<Sandbox>(request.teamId, id, (found, places) => {
    const passed = checkClaimable(found, request)
    if (passed.state !== 'paused') return passed
    if (!request.move && places >= limits.concurrentSandboxes) throw tooManySandboxes(limits)
    isOurs = true
    return beginResume(passed, processId)
  })
  if (!claimed) throw absent(id)
  return { current: claimed, isOurs }
}

/** Returns the new record of a sandbox that needs no start, and the unchanged record of a paused one. */
function checkClaimable(found: Sandbox, request: StartRequest): Sandbox {
  const { id } = found
  if (found.teamId !== request.teamId) throw absent(id)
  if (isRunning(found)) return request.onRunning(found)
  switch (found.state) {
    case 'paused':
      request.checkPaused?.(found)
      return found
    case 'pausing':
    case 'resuming':
    case 'snapshotting':
      request.checkTransition?.(found)
      return found
    case 'killing':
      throw request.killed(id)
    default:
      throw absent(id, found)
  }
}

function boots({ kept }: Sandbox, { boot }: StartRequest): boolean {
  return boot || kept === 'files'
}

async function resume(
  ports: StartPorts,
  claimed: Sandbox,
  request: StartRequest,
): Promise<RunningSandbox> {
  const { store, clock, ending, onEndChanged } = ports
  const { id } = claimed
  const { move } = request
  const placed = await ports.moveIfNeeded(claimed, boots(claimed, request), move?.onStay)
  const envdVersion = await resumeOnNode(ports, placed, request)
  const isClaim = ({ state, generation, nodeId }: Sandbox) =>
    state === 'resuming' && generation === placed.generation && nodeId === placed.nodeId
  const running = await store.update(id, (current) =>
    isClaim(current)
      ? withRequest(
          start(current, { now: clock.now(), seconds: request.seconds, envdVersion }),
          request,
          current,
        )
      : current,
  )
  if (running && isRunning(running)) {
    onEndChanged(running)
    return running
  }
  const isEnding = !running || running.state === 'killing' || running.state === 'ended'
  // Another process took this start for abandoned: the reconciler decides about what runs on the node.
  if (!isEnding) throw changedMeanwhile(id)
  // Kill again: the first kill may have finished before the node resumed the sandbox.
  void ending.tryFinish({ ...placed, isKillRequested: running?.isKillRequested })
  throw running?.state === 'killing' ? request.killed(id) : absent(id, running)
}

/** Returns the version of the running envd. After a failure, the record has been reset or is left to the reconciler. */
async function resumeOnNode(
  ports: StartPorts,
  claimed: Sandbox,
  request: StartRequest,
): Promise<string> {
  const { fleet, settle, tokenOf, networkAccessOf, clock } = ports
  const { id, nodeId, generation, envdVersion = '' } = claimed
  let deadline = AbortSignal.timeout(startLimitMs)
  try {
    const known = {
      ...{ accessToken: tokenOf(claimed), ...(await networkAccessOf(claimed)) },
      keptGeneration: isDurable(claimed) ? claimed.keptGeneration : undefined,
    }
    const node = fleet.of(nodeId)
    await resumeOrFetch(node, { claimed, boot: boots(claimed, request), clock }, () => {
      deadline = AbortSignal.timeout(startLimitMs)
      return node.resume({ id, generation, boot: request.boot, ...known }, deadline)
    })
    return boots(claimed, request) ? await node.envdVersion(deadline) : envdVersion
  } catch (error) {
    const after = await settle(id, request.move ? undefined : request.seconds).catch(() => {
      throw unconfirmed(error, boots(claimed, request))
    })
    if (after && isRunning(after)) return envdVersion
    if (after?.state === 'killing') throw request.killed(id)
    if (after?.state === 'ended') throw absent(id, after)
    throw deadline.aborted ? tookTooLong(error) : error
  }
}

function withRequest(
  started: RunningSandbox,
  { autoPause, move }: StartRequest,
  before: Sandbox,
): RunningSandbox {
  const startedAt = before.startedAt ?? started.startedAt
  const sandbox = move ? move.finish({ ...started, startedAt, endAt: move.endAt }) : started
  if (autoPause === undefined) return sandbox
  return { ...sandbox, lifecycle: { ...sandbox.lifecycle, autoPause } }
}

function startInFlight(id: string): Fault {
  return new Fault(
    'conflict',
    'sandbox_start_in_flight',
    `Sandbox ${id} is already being resumed with its memory, so memory: false cannot be applied: try again when it is paused`,
  )
}

function unconfirmed(cause: unknown, isBoot: boolean): Fault {
  return new Fault(
    'unavailable',
    isBoot ? 'sandbox_filesystem_boot_unconfirmed' : 'node_unavailable',
    'The node does not answer, so the sandbox may or may not have started; try again later',
    { cause },
  )
}

function tookTooLong(cause: unknown): Fault {
  return new Fault(
    'timeout',
    'sandbox_placement_timeout',
    `The sandbox did not start within ${startLimitMs / 1000} seconds; try again later`,
    { cause },
  )
}
