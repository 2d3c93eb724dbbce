import { createAssignIdentity } from '../app/lifecycle/assign-identity.ts'
import { createCells } from '../app/lifecycle/cells.ts'
import type { Cells } from '../app/lifecycle/cells.ts'
import { createCopies } from '../app/lifecycle/copies.ts'
import { createSandboxEvents } from '../app/lifecycle/events.ts'
import type { SandboxEvent, SandboxEvents } from '../app/lifecycle/events.ts'
import { createFreezes } from '../app/lifecycle/freezes.ts'
import type { Freezes } from '../app/lifecycle/freezes.ts'
import { createSandboxes } from '../app/lifecycle/sandboxes.ts'
import { createPrototypes } from '../app/pools/prototypes.ts'
import type { Prototypes } from '../app/pools/prototypes.ts'
import { createWarmPools } from '../app/pools/warm-pools.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import type { Shape } from '../domain/sandboxes/cell.ts'
import type { QuarantinedCell } from '../domain/sandboxes/quarantine.ts'
import { simulateDisks, simulatePorts, simulateRuntime, simulateSlots } from './host.ts'
import type { HostPorts, Overrides } from './host.ts'
import { createHostState } from './host-state.ts'
import type { HostState } from './host-state.ts'
import { memorySnapshots } from './memory-snapshots.ts'

export const shape: Shape = { templateId: 'base', cpuCount: 1, memoryMb: 256, diskSizeMb: 64 }

interface SimulationOptions {
  readonly overrides?: Overrides
  readonly readySandboxes?: number
  readonly budgetBytes?: number
  readonly patienceMs?: number
  /** Empty: the runtime cannot checkpoint memory. */
  readonly memoryFormat?: string | undefined
  readonly quarantined?: readonly QuarantinedCell[]
}

type Changes = Partial<Shape> & {
  readonly sandboxId?: string
  readonly snapshotId?: string
  readonly network?: NetworkRules
  readonly accessToken?: string
  readonly envVars?: Readonly<Record<string, string>>
  readonly isNamed?: boolean
}

/**
 * Simulates a node on an in-memory host: records, processes, slots and files are collections that tests can inspect.
 */
export function simulateNode(options: SimulationOptions = {}) {
  const { overrides = {}, memoryFormat: format = 'runsc 1' } = options
  const memoryFormat = format === '' ? undefined : format
  const state = createHostState()
  const runtime = simulateRuntime(state, memoryFormat, overrides.runtime)
  const disks = simulateDisks(state, overrides.disks)
  const ports = simulatePorts(state, overrides, { runtime, disks })
  const slotPool = simulateSlots(state)
  const events = createSandboxEvents()
  const cells = createCells({ ports, slots: slotPool })
  const freezes = simulateFreezes(state, ports)
  const copies = createCopies(ports, freezes)
  const prototypeStore = memorySnapshots()
  const prototypes = createPrototypes({
    isBuiltIn: (templateId) => templateId === 'base',
    cells,
    store: prototypeStore,
    memoryFormat,
    findTemplate: ports.findTemplate,
    runStartCommand: overrides.runStartCommand ?? (async () => {}),
    nowMs: () => state.clock.nowMs,
    envdDir: ports.envdDir,
    save: (cell, snapshotId, store) =>
      copies.snapshot(cell, { snapshotId, isDurable: true }, store),
  })
  const pools = simulatePools(options, { state, ports, cells, prototypes })
  const sandboxes = createSandboxes({
    ports,
    cells,
    copies,
    freezes,
    pools,
    slots: slotPool,
    events,
    adopted: { running: [], paused: [], quarantined: options.quarantined ?? [] },
  })
  const create = (changes: Changes = {}, signal?: AbortSignal) => {
    const { sandboxId = 'i1', snapshotId, network, accessToken, envVars = {}, ...rest } = changes
    const { isNamed = false, ...sizes } = rest
    return sandboxes.create({
      shape: { ...shape, ...sizes },
      owner: { sandboxId, envVars, ...(network && { network }) },
      accessToken,
      snapshotId,
      isNamed,
      ...(signal && { signal }),
    })
  }
  return { ...state, seen: collect(events), sandboxes, pools, create, prototypeStore }
}

/** Returns a list that grows with the events. */
function collect(events: SandboxEvents): readonly SandboxEvent[] {
  const seen: SandboxEvent[] = []
  const watch = async () => {
    for await (const event of events.watch(new AbortController().signal)) seen.push(event)
  }
  void watch()
  return seen
}

function simulateFreezes(
  { stopped, clock, stuck }: HostState,
  { records, runtime }: HostPorts,
): Freezes {
  return createFreezes({
    records,
    wake: ({ process }) => process && runtime.setIdleLevel(process, 'awake'),
    freeze: ({ cellId }) => runtime.freeze(cellId),
    thaw: ({ cellId }) => runtime.thaw(cellId),
    isStopped: ({ cellId }) => stopped.has(cellId),
    nowMs: () => clock.nowMs,
    onStuck: ({ record }, { waitMs }) => void stuck.push(`${record.cellId} for ${waitMs}`),
    onThawed: ({ record }) => void stuck.push(`${record.cellId} thawed`),
  })
}

function simulatePools(
  { overrides = {}, readySandboxes, budgetBytes, patienceMs }: SimulationOptions,
  {
    state: { alive, clock, errors, rules },
    ports,
    cells,
    prototypes,
  }: {
    readonly state: HostState
    readonly ports: HostPorts
    readonly cells: Cells
    readonly prototypes: Prototypes
  },
): WarmPools {
  const { runtime } = ports
  return createWarmPools({
    cells,
    prototypes,
    // No warm pool by default, so that tests see only their own sandboxes.
    budgetBytes: budgetBytes ?? (readySandboxes === undefined ? 0 : 2 ** 40),
    floors: [{ shape, count: readySandboxes ?? 0 }],
    adopted: [],
    patienceMs,
    ports: {
      records: ports.records,
      setRules: ports.setRules,
      forgetConnections:
        overrides.forgetConnections ??
        (async (slot) => void rules.push(`${slot.number} is forgotten`)),
      disks: ports.disks,
      prepare: overrides.prepare ?? (async () => {}),
      assignIdentity: createAssignIdentity(ports),
      findTemplate: ports.findTemplate,
      runStartCommand: overrides.runStartCommand ?? (async () => {}),
      freeze: runtime.freeze,
      thaw: runtime.thaw,
      isAlive: ({ record }) => record.process !== undefined && alive.has(record.process.pid),
      memoryBytes: ports.memoryBytes,
      snapshotBytes: overrides.snapshotBytes ?? ports.snapshots.sizeBytes,
      checkDisk: () => {},
      freeMemoryBytes: overrides.freeMemoryBytes ?? (async () => 2 ** 40),
      nowMs: () => clock.nowMs,
      onError: (error) => void errors.push(error),
    },
  })
}
