import { Fault } from '@atoll/kit/fault'
import { checkId, checkShape, memoryWriter } from '../../domain/sandboxes/cell.ts'
import type { Cell, CellRecord, Owner, Shape } from '../../domain/sandboxes/cell.ts'
import { withAuthority } from '../../domain/network/network-rules.ts'
import type { NetworkRules } from '../../domain/network/network-rules.ts'
import { quarantinedFault } from '../../domain/sandboxes/quarantine.ts'
import type { QuarantinedCell } from '../../domain/sandboxes/quarantine.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { SnapshotStore } from '../../domain/sandboxes/snapshot.ts'
import type { Cells } from './cells.ts'
import { createClaim } from './claim.ts'
import type { ClaimPorts, ClaimRequest } from './claim.ts'
import type { Copies } from './copies.ts'
import type { SandboxEvents } from './events.ts'
import { checkReadable, createResume } from './resume.ts'
import type { ResumePorts, ResumeRequest } from './resume.ts'
import type { SlotPool } from '../pools/slot-pool.ts'
import type { Freezes } from './freezes.ts'
import type { WarmPools } from '../pools/warm-pools.ts'
import { createKeyedQueue } from './keyed-queue.ts'

/** Running and paused sandboxes of this node, and the operations on them. */
export interface Sandboxes {
  create(request: CreateRequest): Promise<RunningSandbox>
  /** Returns once nothing of the sandbox is left on the host. */
  kill(sandboxId: string, reason?: string): Promise<void>
  /** Succeeds when the sandbox is already paused. Returns the bytes it takes on disk, or 0 when unknown. */
  pause(
    sandboxId: string,
    options: { readonly keepMemory: boolean },
  ): Promise<{ readonly sizeBytes: number }>
  /** Succeeds when the sandbox already runs. */
  resume(request: ResumeRequest): Promise<RunningSandbox>
  /** Returns the size of the snapshot and whether it includes memory. */
  snapshot(
    sandboxId: string,
    snapshotId: string,
  ): Promise<{ readonly keepsMemory: boolean; readonly sizeBytes: number }>
  setNetwork(sandboxId: string, rules: NetworkRules): Promise<void>
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
  /** One pass: removes sandboxes whose first process is dead, and reports the reason. */
  removeDead(): Promise<void>
  /** One pass: retries to thaw sandboxes that a copy left frozen. */
  retryThaws(): Promise<void>
  /** Freezes and thaws the sandbox, so that each of its threads runs once. Threads of a killed process then exit. */
  freezeAndThaw(sandboxId: string): Promise<void>
  /**
   * Ends the sandbox unless `isWell` returns true. No other operation on the sandbox runs meanwhile. Returns whether
   * the sandbox is well.
   */
  killUnless(
    isWell: (sandbox: RunningSandbox) => Promise<boolean>,
    sandboxId: string,
  ): Promise<boolean>
  /** Waits for all operations in progress. */
  settle(): Promise<void>
}

export interface CreateRequest extends ClaimRequest {
  readonly shape: Shape
  readonly owner: Owner
  readonly snapshotId?: string | undefined
  /** Claims only a pre-named sandbox. Such a request cannot have variables, a snapshot or header rules. */
  readonly isNamed?: boolean
}

export interface SandboxPorts extends ClaimPorts, ResumePorts {
  readonly snapshots: SnapshotStore
  setRules(slot: Slot, rules: NetworkRules): Promise<void>
  /** Makes programs in the cell trust this certificate authority, in PEM, instead of an earlier one. */
  trust(cell: Cell, certificate: string): Promise<void>
  /** Number of OOM kills in this cell. */
  oomKills(cellId: string): number
  erase(cellId: string): Promise<void>
  /** Ends processes and mounts. Keeps the files. */
  halt(cellId: string): Promise<void>
  /** Kills the first process of a cell, and with it all others. */
  endProcess(record: CellRecord): void
  /** Throws a fault when the host has no space for another sandbox with such a disk. */
  checkDisk(sizeMb: number): void
  /** Bytes that a paused sandbox takes on disk. */
  keptBytes(record: PausedSandbox): Promise<number>
}

export function createSandboxes(parts: {
  readonly ports: SandboxPorts
  readonly cells: Cells
  readonly copies: Copies
  readonly freezes: Freezes
  readonly pools: WarmPools
  readonly slots: SlotPool
  readonly events: SandboxEvents
  readonly adopted: {
    readonly running: readonly RunningSandbox[]
    readonly paused: readonly PausedSandbox[]
    readonly quarantined: readonly QuarantinedCell[]
  }
}): Sandboxes {
  const { ports, cells, copies, freezes, pools, events } = parts
  const { records, runtime, snapshots } = ports
  const running = new Map(parts.adopted.running.map((one) => [one.record.owner.sandboxId, one]))
  const paused = new Map(parts.adopted.paused.map((one) => [one.owner.sandboxId, one]))
  const quarantined = new Map(
    parts.adopted.quarantined.flatMap((cell) => {
      const { sandboxId } = cell
      const isReadElsewhere = !sandboxId || running.has(sandboxId) || paused.has(sandboxId)
      return isReadElsewhere ? [] : [[sandboxId, cell] as const]
    }),
  )
  const hasUnnamedQuarantine = parts.adopted.quarantined.some(({ sandboxId }) => !sandboxId)
  const pausing = new Set<string>()
  const queue = createKeyedQueue()
  const claim = createClaim(ports, pools)
  const resume = createResume({ ports, cells, slots: parts.slots, claim })

  const isTaken = (sandboxId: string) =>
    running.has(sandboxId) || paused.has(sandboxId) || quarantined.has(sandboxId)

  /** An unknown ID may belong to a sandbox whose record does not even show its ID. */
  const isQuarantined = (sandboxId: string) =>
    quarantined.has(sandboxId) ||
    (hasUnnamedQuarantine && !running.has(sandboxId) && !paused.has(sandboxId))

  async function build(request: CreateRequest): Promise<RunningSandbox> {
    const { sandboxId } = request.owner
    if (isTaken(sandboxId)) throw taken('Sandbox', sandboxId)
    const from =
      request.snapshotId === undefined ? undefined : await findSnapshot(request.snapshotId)
    const { signal } = request
    const { network, ...trusted } = withAuthority(
      request.owner.network,
      from?.snapshot.authority,
      ports.createAuthority,
    )
    const cell = await pools.take({ shape: request.shape, from, network, signal })
    // A copy keeps the variables of the original, which are in its memory, unless the request has others.
    const isGiven = Object.keys(request.owner.envVars).length > 0
    const envVars = isGiven || !from ? request.owner.envVars : from.snapshot.envVars
    const owner = { ...request.owner, envVars, ...(network && { network }), ...trusted }
    return admitOrErase(cell, async () => {
      await records.update({ ...cell.record, phase: 'making', owner })
      return claim.assignAndStart({ ...cell, record: { ...cell.record, owner } }, request)
    })
  }

  /** Claims the pre-named sandbox that already has this identity. */
  async function buildNamed(request: CreateRequest): Promise<RunningSandbox> {
    const { shape, owner, accessToken, snapshotId, signal } = request
    const { sandboxId, network, envVars } = owner
    if (snapshotId !== undefined || Object.keys(envVars).length > 0 || network?.transforms) {
      throw new Fault('invalid', 'name_says_more', 'One that was named ahead brings nothing else')
    }
    if (isTaken(sandboxId)) throw taken('Sandbox', sandboxId)
    const cell = await pools.takePreassigned({ shape, network }, { sandboxId, accessToken })
    if (!cell) throw new Fault('conflict', 'name_gone', `None stands ready as ${sandboxId}`)
    const owned = { ...cell, record: { ...cell.record, owner } }
    return admitOrErase(cell, () => claim.startPreassigned(owned, signal))
  }

  async function admitOrErase(
    cell: Cell,
    claimed: () => Promise<RunningSandbox>,
  ): Promise<RunningSandbox> {
    try {
      return admit(await claimed())
    } catch (error) {
      // Rethrow the original error; cleanup errors are secondary.
      await cells.erase(cell).catch(() => {})
      throw error
    }
  }

  /** Registers a running sandbox and starts the routing of requests to it. */
  function admit(sandbox: RunningSandbox): RunningSandbox {
    const { sandboxId } = sandbox.record.owner
    paused.delete(sandboxId)
    running.set(sandboxId, sandbox)
    events.started(sandbox)
    return sandbox
  }

  async function findSnapshot(snapshotId: string) {
    checkId(snapshotId)
    const snapshot = await snapshots.find(snapshotId)
    if (!snapshot) {
      throw new Fault('not_found', 'snapshot_not_found', `No snapshot ${snapshotId} here`)
    }
    await checkReadable(runtime, snapshot)
    return { snapshot, ...snapshots.place(snapshotId) }
  }

  async function letGo(sandbox: RunningSandbox, keepMemory: boolean): Promise<PausedSandbox> {
    const { record } = sandbox
    const { sandboxId } = record.owner
    const format = await runtime.memoryFormat()
    if (keepMemory && format === undefined) {
      throw new Fault(
        'invalid',
        'memory_not_kept',
        `The runtime ${runtime.name} keeps files alone, not memory`,
      )
    }
    const { process: _process, slotNumber: _slot, ...rest } = record
    const memory =
      keepMemory && format !== undefined ? { memory: memoryWriter(record, format) } : {}
    const kept: PausedSandbox = { ...rest, ...memory, phase: 'paused' }
    // Once this record is written, the sandbox is paused, even if the agent crashes.
    const seal = () => records.update(kept)
    pausing.add(sandboxId)
    events.pausing(sandboxId)
    try {
      await (keepMemory ? copies.keepMemory(sandbox, seal) : seal())
    } catch (error) {
      events.started(sandbox)
      throw error
    } finally {
      pausing.delete(sandboxId)
    }
    running.delete(sandboxId)
    paused.set(sandboxId, kept)
    events.paused(sandboxId)
    await cells.halt(sandbox)
    await ports.tidy(kept)
    await ports.disks.flush(ports.diskImage(record.cellId, record.disk))
    return kept
  }

  async function remove(sandbox: RunningSandbox, reason: string): Promise<void> {
    const { sandboxId } = sandbox.record.owner
    // Stops the routing of requests to the sandbox; the edge resets its connections.
    events.ended(sandboxId, reason)
    running.delete(sandboxId)
    await cells.erase(sandbox)
  }

  function reasonOfDeath({ cellId, memoryMb }: CellRecord): string {
    return ports.oomKills(cellId) > 0
      ? `ran out of memory (limit ${memoryMb} MB)`
      : 'died: its first process ended'
  }

  const isDead = ({ record }: RunningSandbox) => !record.process || !ports.isAlive(record.process)

  function find(sandboxId: string): RunningSandbox {
    const sandbox = running.get(sandboxId)
    if (sandbox) return sandbox
    if (isQuarantined(sandboxId)) throw quarantinedFault(`Sandbox ${sandboxId}`)
    throw new Fault('not_found', 'sandbox_not_found', `No sandbox ${sandboxId} runs here`)
  }

  return {
    async create(request) {
      checkId(request.owner.sandboxId)
      checkShape(request.shape)
      ports.checkDisk(request.shape.diskSizeMb)
      const make = request.isNamed ? buildNamed : build
      return queue.run(request.owner.sandboxId, () => make(request))
    },

    async kill(sandboxId, reason = 'was killed') {
      const alive = running.get(sandboxId)
      // The operation in progress may wait for a sandbox that does not answer. It fails as soon as the process is dead.
      if (alive && queue.isBusy(sandboxId)) ports.endProcess(alive.record)
      return queue.run(sandboxId, async () => {
        const sandbox = running.get(sandboxId)
        if (sandbox) return remove(sandbox, reason)
        const record = paused.get(sandboxId)
        const cell = quarantined.get(sandboxId)
        if (cell) {
          // Keep the files: a release that can read the record removes them when the control plane asks again.
          await ports.halt(cell.cellId)
          quarantined.delete(sandboxId)
          events.ended(sandboxId, reason)
        }
        if (!record) return
        paused.delete(sandboxId)
        events.ended(sandboxId, reason)
        await ports.erase(record.cellId)
      })
    },

    pause: (sandboxId, { keepMemory }) =>
      queue.run(sandboxId, async () => {
        const kept = paused.get(sandboxId) ?? (await letGo(find(sandboxId), keepMemory))
        return { sizeBytes: await ports.keptBytes(kept).catch(() => 0) }
      }),

    resume: (request) =>
      queue.run(request.sandboxId, async () => {
        const record = paused.get(request.sandboxId)
        if (!record) return find(request.sandboxId)
        return admit(await resume(record, request))
      }),

    async snapshot(sandboxId, snapshotId) {
      checkId(snapshotId)
      return queue.run(sandboxId, async () => {
        const sandbox = find(sandboxId)
        if (await snapshots.find(snapshotId)) throw taken('Snapshot', snapshotId)
        const { memory } = await copies.snapshot(sandbox, snapshotId, snapshots)
        const sizeBytes = await snapshots.sizeBytes(snapshotId)
        return { keepsMemory: memory !== undefined, sizeBytes }
      })
    },

    setNetwork: (sandboxId, wanted) =>
      queue.run(sandboxId, async () => {
        const { record, slot } = find(sandboxId)
        const { owner } = record
        const { network, ...trusted } = withAuthority(
          wanted,
          owner.authority,
          ports.createAuthority,
        )
        const changed = { ...record, owner: { ...owner, network, ...trusted } }
        // Install the certificate before the rules, so that no program meets one that it does not trust. Do so even for
        // a known authority: the sandbox may have been booted since.
        const authority = owner.network?.transforms ? undefined : network.transforms?.authority
        if (authority) await ports.trust({ record, slot }, authority.certificate)
        await ports.setRules(slot, network)
        const isStuck = freezes.isStuck(record.cellId)
        await records.update(isStuck ? { ...changed, phase: 'copying' } : changed)
        running.set(sandboxId, { record: changed, slot })
      }),

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

    async removeDead() {
      const dead = [...running.values()].filter(isDead)
      const bury = ({ record }: RunningSandbox) =>
        queue.run(record.owner.sandboxId, async () => {
          const sandbox = running.get(record.owner.sandboxId)
          if (sandbox && isDead(sandbox)) await remove(sandbox, reasonOfDeath(sandbox.record))
        })
      await Promise.all(dead.map(bury))
    },

    async retryThaws() {
      const letGoOn = ({ record }: RunningSandbox) =>
        queue.run(record.owner.sandboxId, async () => {
          const sandbox = running.get(record.owner.sandboxId)
          if (sandbox && freezes.isStuck(sandbox.record.cellId)) await freezes.thaw(sandbox)
        })
      await Promise.all(freezes.dueForThaw([...running.values()]).map(letGoOn))
    },

    freezeAndThaw: (sandboxId) =>
      queue.run(sandboxId, async () => {
        const sandbox = running.get(sandboxId)
        if (!sandbox || isDead(sandbox)) return
        try {
          await freezes.freeze(sandbox)
        } finally {
          await freezes.thaw(sandbox)
        }
      }),

    killUnless: (isWell, sandboxId) =>
      queue.run(sandboxId, async () => {
        const sandbox = running.get(sandboxId)
        if (!sandbox || freezes.isStuck(sandbox.record.cellId)) return false
        if (await isWell(sandbox)) return true
        await remove(sandbox, reasonOfDeath(sandbox.record))
        return false
      }),

    settle: queue.settle,
  }
}

function taken(what: string, id: string): Fault {
  return new Fault('conflict', 'id_taken', `${what} ${id} exists already`)
}
