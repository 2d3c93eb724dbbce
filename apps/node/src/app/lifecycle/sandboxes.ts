import { checkId, checkShape } from '../../domain/sandboxes/cell.ts'
import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import { Fault } from '@atoll/kit/fault'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import { isEvicted, sandboxEvicted } from '../../domain/sandboxes/sandbox.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { SlotPool } from '../pools/slot-pool.ts'
import type { WarmPools } from '../pools/warm-pools.ts'
import type { Cells } from './cells.ts'
import { createClaim } from './claim.ts'
import type { ClaimPorts } from './claim.ts'
import type { Copies } from './copies.ts'
import { checkPreassignable, createCreateSandbox } from './create-sandbox.ts'
import type { CreatePorts, CreateRequest } from './create-sandbox.ts'
import type { SandboxEvents } from './events.ts'
import type { Freezes } from './freezes.ts'
import { withInspections } from './inspections.ts'
import { createKeyedQueue } from './keyed-queue.ts'
import { createKill } from './kill.ts'
import type { KillPorts } from './kill.ts'
import { createPause } from './pause.ts'
import { createPausedOperations } from './paused-operations.ts'
import type { PausedOperations, PausedPorts } from './paused-operations.ts'
import { createRecovery } from './recovery.ts'
import type { Recovery } from './recovery.ts'
import { createReleases } from './releases.ts'
import { createResume } from './resume.ts'
import type { ResumePorts, ResumeRequest } from './resume.ts'
import { createSandboxRegistry, idTaken } from './sandbox-registry.ts'
import type { AdoptedSandboxes, SandboxRegistry } from './sandbox-registry.ts'
import { createSetNetwork } from './set-network.ts'
import type { NetworkPorts } from './set-network.ts'
import { createSupersededCells } from './superseded-cells.ts'
import type { SupersededCellPorts } from './superseded-cells.ts'

export interface Pause {
  /** Size of the paused sandbox on disk; 0 if unknown. */
  readonly sizeBytes: number
  /** Random ID of the pause, if it has one. */
  readonly keptId?: string
}

/**
 * Running and paused sandboxes of this node, and the operations on them. Operations on one sandbox run in order. An
 * operation with a generation fails if the sandbox has a newer one; the node's own operations have none.
 */
export interface Sandboxes extends SandboxViews, Recovery, PausedOperations {
  create(request: CreateRequest): Promise<RunningSandbox>
  /** Returns once nothing of the sandbox is left on the host. */
  kill(sandboxId: string, options?: KillOptions): Promise<void>
  /** Succeeds when the sandbox is already paused. */
  pause(
    sandboxId: string,
    options: { readonly keepMemory: boolean; readonly generation?: number },
  ): Promise<Pause>
  /** Succeeds when the sandbox already runs. */
  resume(request: ResumeRequest): Promise<RunningSandbox>
  /** Returns the size of the snapshot and whether it includes memory. */
  snapshot(sandboxId: string, snapshotId: string, options?: SnapshotOptions): Promise<SnapshotInfo>
  setNetwork(sandboxId: string, rules: NetworkRules, generation?: number): Promise<void>
  /** Looks at a sandbox without changing it. Any other operation on it aborts `task`. */
  inspect<T>(
    sandboxId: string,
    task: (cell: InspectedCell, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>
  /** Waits for all operations in progress. */
  settle(): Promise<void>
}

interface SnapshotOptions {
  readonly generation?: number
  /** Number of sandboxes that are created from the snapshot right away, before it is removed. 0: a snapshot to keep. */
  readonly copies?: number
}

interface SnapshotInfo {
  readonly keepsMemory: boolean
  readonly sizeBytes: number
}

interface KillOptions {
  readonly reason?: string
  readonly generation?: number
  /** Another node has the sandbox: only this node forgets it. */
  readonly isElsewhere?: boolean
}

export interface InspectedCell {
  readonly record: CellRecord
  /** Whether the disk is mounted: the sandbox runs. */
  readonly isMounted: boolean
}

export interface SandboxViews {
  get(sandboxId: string): RunningSandbox | PausedSandbox | undefined
  /** Running sandboxes, also during a pause. An ID limits the result to that sandbox. */
  running(sandboxId?: string): RunningSandbox[]
  /** Whether the sandbox is being paused: it is frozen or soon will be. */
  isPausing(sandboxId: string): boolean
  paused(): PausedSandbox[]
  /** IDs of sandboxes with unreadable records, as far as known. */
  quarantined(): string[]
  /** Whether this ID belongs, or may belong, to a sandbox with an unreadable record. */
  isQuarantined(sandboxId: string): boolean
}

export interface SandboxPorts
  extends
    ClaimPorts,
    CreatePorts,
    ResumePorts,
    KillPorts,
    NetworkPorts,
    PausedPorts,
    SupersededCellPorts {
  readonly records: {
    create(record: CellRecord): Promise<void>
    update(record: CellRecord): Promise<void>
  }
  /** Kills the first process of a cell, and with it all others. */
  endProcess(record: CellRecord): void
  /** Throws a fault when the host has no space for another sandbox with such a disk. */
  checkDisk(sizeMb: number): void
  /** Reports that processes, mounts or the slot of a paused sandbox are left; the next start of the node removes them. */
  onReleaseError(error: unknown): void
  /** Bytes that a paused sandbox takes on disk. */
  keptBytes(record: PausedSandbox): Promise<number>
}

export interface SandboxParts {
  readonly ports: SandboxPorts
  readonly cells: Cells
  readonly copies: Copies
  readonly freezes: Freezes
  readonly pools: WarmPools
  readonly slots: SlotPool
  readonly events: SandboxEvents
  readonly adopted: AdoptedSandboxes
}

export function createSandboxes(parts: SandboxParts): Sandboxes {
  const { ports, copies, pools, events } = parts
  const registry = createSandboxRegistry(parts.adopted)
  const queue = withInspections(createKeyedQueue())
  const claim = createClaim(ports, pools.thaw)
  const createSandbox = createCreateSandbox({ ...parts, claim })
  const superseded = createSupersededCells(ports)
  const releases = createReleases(ports.onReleaseError)
  const resume = createResume({ ...parts, claim, superseded, releases })
  const pause = createPause({ ...parts, registry, superseded })
  const kill = createKill({ ...parts, registry, superseded, releases })
  const setNetwork = createSetNetwork(ports, parts.freezes)

  /** Registers a running sandbox and starts the routing of requests to it. */
  function register(sandbox: RunningSandbox): RunningSandbox {
    const { sandboxId } = sandbox.record.owner
    registry.paused.delete(sandboxId)
    registry.running.set(sandboxId, sandbox)
    events.started(sandbox)
    return sandbox
  }

  const checkGeneration = (sandboxId: string, generation: number | undefined) => {
    if (generation !== undefined) registry.checkGeneration(sandboxId, generation)
  }

  /** Runs `work` in the queue of the sandbox, unless the sandbox has a newer generation by then. */
  const runFor = <T>(sandboxId: string, generation: number | undefined, work: () => Promise<T>) =>
    queue.run(sandboxId, async () => {
      checkGeneration(sandboxId, generation)
      return work()
    })

  return {
    ...viewsOf(registry),
    ...createRecovery({ ...parts, registry, queue, kill }),
    ...createPausedOperations({ ports, registry, queue, releases, superseded }),
    async settle() {
      await queue.settle()
      await Promise.all([releases.settle(), superseded.settle()])
    },

    async create(request) {
      const { sandboxId } = request.owner
      checkId(sandboxId)
      checkShape(request.shape)
      ports.checkDisk(request.shape.diskSizeMb)
      return queue.run(sandboxId, async () => {
        if (request.isNamed) checkPreassignable(request)
        registry.checkUnused(sandboxId)
        return register(await createSandbox(request))
      })
    },

    async kill(sandboxId, { reason = 'was killed', generation, isElsewhere } = {}) {
      checkGeneration(sandboxId, generation)
      const alive = registry.running.get(sandboxId)
      // The operation in progress may wait for a sandbox that does not answer. It fails as soon as the process is dead.
      if (alive && queue.isBusy(sandboxId)) ports.endProcess(alive.record)
      return runFor(sandboxId, generation, () => kill.any(sandboxId, reason, isElsewhere))
    },

    pause(sandboxId, { keepMemory, generation }) {
      const { promise, resolve, reject } = Promise.withResolvers<Pause>()
      const answer = async (paused: PausedSandbox) => resolve(await describePause(ports, paused))
      // The caller waits until the state is durable; the next operation also waits for processes and mounts to be gone.
      runFor(sandboxId, generation, async () => {
        const earlier = registry.paused.get(sandboxId)
        if (earlier) return answer(earlier)
        const { paused, release } = await pause(registry.find(sandboxId), keepMemory)
        await answer(paused)
        await releases.begin(sandboxId, release)
      }).catch(reject)
      return promise
    },

    resume: (request) =>
      runFor(request.sandboxId, request.generation, async () => {
        const record = registry.paused.get(request.sandboxId)
        if (!record) return raiseRunning(ports, registry, request)
        checkNewest(record, request)
        const raised = raiseGeneration(record, request.generation)
        registry.paused.set(request.sandboxId, raised)
        return register(await resume(raised, request))
      }),

    async snapshot(sandboxId, snapshotId, { generation, copies: count = 0 } = {}) {
      checkId(snapshotId)
      const { snapshots } = ports
      return runFor(sandboxId, generation, async () => {
        const sandbox = registry.find(sandboxId)
        if (await snapshots.find(snapshotId)) throw idTaken('Snapshot', snapshotId)
        if (count > 0) void parts.cells.expectRestores(sandbox.record, count).catch(() => {})
        const add = count > 0 ? snapshots.addTemporary : snapshots.add
        const plan = { snapshotId, isDurable: count === 0 }
        const { memory } = await copies.snapshot(sandbox, plan, { add })
        const sizeBytes = await snapshots.sizeBytes(snapshotId)
        return { keepsMemory: memory !== undefined, sizeBytes }
      })
    },

    setNetwork: (sandboxId, rules, generation) =>
      runFor(sandboxId, generation, async () => {
        registry.running.set(sandboxId, await setNetwork(registry.find(sandboxId), rules))
      }),

    inspect: (sandboxId, task, signal) =>
      queue.inspect(
        sandboxId,
        async (ended) => {
          await releases.finished(sandboxId)
          return task(findInspected(registry, sandboxId), ended)
        },
        signal,
      ),
  }
}

async function describePause(
  { keptBytes }: Pick<SandboxPorts, 'keptBytes'>,
  paused: PausedSandbox,
): Promise<Pause> {
  const { keptId } = paused
  return {
    sizeBytes: await keptBytes(paused).catch(() => 0),
    ...(keptId !== undefined && { keptId }),
  }
}

function findInspected(registry: SandboxRegistry, sandboxId: string): InspectedCell {
  const paused = registry.paused.get(sandboxId)
  if (paused && isEvicted(paused)) throw sandboxEvicted(sandboxId)
  const record = paused ?? registry.find(sandboxId).record
  return { record, isMounted: paused === undefined }
}

/** Checks that the newest content is here. Content without a number cannot be compared, so it counts as the newest. */
function checkNewest(record: PausedSandbox, wanted: ResumeRequest): void {
  const { owner, keptGeneration } = record
  const { keptGeneration: newest = 0 } = wanted
  if (keptGeneration === undefined || keptGeneration >= newest) {
    if (isEvicted(record)) throw sandboxEvicted(owner.sandboxId)
    return
  }
  throw new Fault(
    'not_found',
    'sandbox_not_found',
    `Sandbox ${owner.sandboxId} has content of generation ${keptGeneration} on this node, and generation ${newest} was paused since`,
  )
}

/** The answer to an earlier resume was lost, and this one has a newer generation. */
async function raiseRunning(
  { records }: Pick<SandboxPorts, 'records'>,
  registry: SandboxRegistry,
  { sandboxId, generation }: ResumeRequest & { readonly generation?: number | undefined },
): Promise<RunningSandbox> {
  const sandbox = registry.find(sandboxId)
  const { record } = sandbox
  if (!generation || generation === record.owner.generation) return sandbox
  const raised = { ...sandbox, record: { ...record, owner: { ...record.owner, generation } } }
  await records.update(raised.record)
  registry.running.set(sandboxId, raised)
  return raised
}

/** Holds even if the resume fails: a delayed call for an older generation must not start the sandbox later. */
function raiseGeneration(paused: PausedSandbox, generation: number | undefined): PausedSandbox {
  if (generation === undefined || generation === 0) return paused
  return { ...paused, owner: { ...paused.owner, generation } }
}

function viewsOf({
  running,
  paused,
  pausing,
  quarantined,
  isQuarantined,
}: SandboxRegistry): SandboxViews {
  return {
    get: (sandboxId) => running.get(sandboxId) ?? paused.get(sandboxId),
    running(sandboxId) {
      if (sandboxId === undefined) return [...running.values()]
      const sandbox = running.get(sandboxId)
      return sandbox ? [sandbox] : []
    },
    isPausing: (sandboxId) => pausing.has(sandboxId),
    paused: () => [...paused.values()],
    quarantined: () => [...quarantined.keys()],
    isQuarantined,
  }
}
