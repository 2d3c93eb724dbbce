import type { CellRecord, Shape } from '../domain/sandboxes/cell.ts'
import type { Disks } from '../domain/host/disks.ts'
import type { NetworkRules } from '../domain/network/network-rules.ts'
import { parseSubnet, toSlot } from '../domain/network/slot.ts'
import type { QuarantinedCell } from '../domain/sandboxes/quarantine.ts'
import type { Snapshot, SnapshotStore } from '../domain/sandboxes/snapshot.ts'
import { createCells } from '../app/lifecycle/cells.ts'
import type { CellPorts } from '../app/lifecycle/cells.ts'
import { createCopies } from '../app/lifecycle/copies.ts'
import type { CopyPorts } from '../app/lifecycle/copies.ts'
import { createSandboxEvents } from '../app/lifecycle/events.ts'
import type { SandboxEvent } from '../app/lifecycle/events.ts'
import { createPrototypes } from '../app/pools/prototypes.ts'
import { createSandboxes } from '../app/lifecycle/sandboxes.ts'
import type { SandboxPorts } from '../app/lifecycle/sandboxes.ts'
import { createFreezes } from '../app/lifecycle/freezes.ts'
import { createWarmPools } from '../app/pools/warm-pools.ts'
import type { WarmPoolPorts } from '../app/pools/warm-pools.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'
import type { Runtime, StartRequest } from '../domain/sandboxes/runtime.ts'
import { createAssignIdentity } from '../app/lifecycle/assign-identity.ts'

export const shape: Shape = { templateId: 'base', cpuCount: 1, memoryMb: 256, diskSizeMb: 64 }

type Overrides = Partial<
  Omit<CellPorts & CopyPorts & SandboxPorts & WarmPoolPorts, 'runtime' | 'records' | 'disks'>
> & {
  readonly runtime?: Partial<Runtime>
  readonly disks?: Partial<Disks>
  /** May throw to refuse the write of a record. */
  readonly beforeUpdate?: (record: CellRecord) => void
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
export function simulateNode(
  options: {
    readonly overrides?: Overrides
    readonly readySandboxes?: number
    readonly budgetBytes?: number
    readonly patienceMs?: number
    readonly memoryFormat?: string | undefined
    readonly quarantined?: readonly QuarantinedCell[]
  } = {},
) {
  const { overrides = {}, memoryFormat = 'runsc 1' } = options
  const subnet = parseSubnet('10.0.0.0/24')
  const records = new Map<string, CellRecord>()
  const alive = new Set<number>()
  const pids = new Map<string, number>()
  const slots = new Set<number>()
  const frozen = new Set<string>()
  const stopped = new Set<string>()
  const files = new Map<string, string>()
  const snapshots = memorySnapshots()
  const introduced: { readonly address: string; readonly sandboxId: string }[] = []
  /** Log of rule changes, trusted authorities and restores. */
  const rules: string[] = []
  let authorities = 0
  const levelled: string[] = []
  const errors: unknown[] = []
  /** Log of cells whose thaw failed or succeeded later. */
  const stuck: string[] = []
  const events = createSandboxEvents()
  const seen: SandboxEvent[] = []
  void (async () => {
    for await (const event of events.watch(new AbortController().signal)) seen.push(event)
  })()
  const clock = { nowMs: 0 }
  let nextPid = 100
  let nextSlot = 0

  async function start({ cell }: StartRequest): Promise<ProcessIdentity> {
    nextPid += 1
    alive.add(nextPid)
    pids.set(cell.cellId, nextPid)
    return { pid: nextPid, started: 'now' }
  }
  async function halt(cellId: string): Promise<void> {
    alive.delete(pids.get(cellId) ?? 0)
    frozen.delete(cellId)
  }
  const runtime: Runtime = {
    name: 'gvisor',
    noticesKillsLate: true,
    idShift: 0,
    release: async () => memoryFormat || 'runsc 0',
    memoryFormat: async () => (options.memoryFormat === '' ? undefined : memoryFormat),
    start,
    async restore(request) {
      rules.push(`${request.slot.number} goes on`)
      return start(request)
    },
    freeze: async (cellId) => void frozen.add(cellId),
    thaw: async (cellId) => void frozen.delete(cellId),
    saveMemory: async (_cellId, dir) => void files.set(dir, 'memory'),
    setHostname: async () => {},
    setIdleLevel: () => {},
    orphanedRequests: () => [],
    remove: async () => {},
    list: async () => [],
    ...overrides.runtime,
  }
  const disks: Disks = {
    create: async (image: string) => void files.set(image, 'empty'),
    copy: async (from: string, to: string) => void files.set(to, files.get(from) ?? 'nothing'),
    flush: async () => {},
    usedBytes: async () => 1,
    sharesBlocks: async () => false,
    holdRoom: () => ({ [Symbol.dispose]() {} }),
    ...overrides.disks,
  }
  const ports: CellPorts & CopyPorts & SandboxPorts = {
    records: {
      create: async (record) => void records.set(record.cellId, record),
      async update(record) {
        overrides.beforeUpdate?.(record)
        records.set(record.cellId, record)
      },
    },
    admitDisk: () => {},
    checkDisk: () => {},
    mountRootfs: async () => ({ path: '/rootfs', hasSudo: true }),
    bundleDir: (id) => `/cells/${id}/bundle`,
    diskImage: (id, name) => `/cells/${id}/${name}`,
    memoryDir: (id) => `/cells/${id}/memory`,
    useMemory: (_dir, work) => work(),
    findTemplate: (templateId) => (templateId === 'base' ? { layer: 'l1' } : undefined),
    envdDir: '/envd/e1',
    findEnvd: async (name) => `/envd/${name}`,
    halt,
    async erase(cellId) {
      await halt(cellId)
      records.delete(cellId)
      for (const path of files.keys()) if (path.startsWith(`/cells/${cellId}/`)) files.delete(path)
    },
    memoryBytes: async () => 1,
    syncDisk: async () => {},
    flushFolder: async () => {},
    removeFolder: async (dir) => void files.delete(dir),
    endHalfOpen: async () => {},
    snapshots,
    initEnvd: async (slot, _token, { sandboxId }) =>
      void introduced.push({ address: slot.sandboxAddress, sandboxId }),
    setRules: async (slot, given) =>
      void rules.push(`${slot.number} ${given?.denyOut.join() ?? ''}`),
    createAuthority: () => ({ certificate: `authority ${(authorities += 1)}`, key: '' }),
    trust: async (cell, certificate) =>
      void rules.push(`${cell.slot.number} trusts ${certificate}`),
    isAlive: ({ pid }: ProcessIdentity) => alive.has(pid),
    dropBootPriority: async (cellId) => void levelled.push(cellId),
    oomKills: () => 0,
    endProcess: ({ process }) => void alive.delete(process?.pid ?? 0),
    launchStartCommand: async () => {},
    keptBytes: async ({ memory }) => (memory === undefined ? 3 : 5),
    async tidy({ cellId, disk, memory }) {
      for (const path of files.keys()) {
        if (!path.startsWith(`/cells/${cellId}/`)) continue
        if (!path.endsWith(`/${disk}`) && !(memory && path.endsWith('/memory'))) files.delete(path)
      }
    },
    ...overrides,
    runtime,
    disks,
  }
  const slotPool = {
    async take() {
      const slot = toSlot(subnet, 'atx-', nextSlot++)
      slots.add(slot.number)
      return slot
    },
    giveBack: async (slot: { readonly number: number }) => void slots.delete(slot.number),
    slot: (number: number) => toSlot(subnet, 'atx-', number),
    close: async () => {},
  }
  const cells = createCells({ ports, slots: slotPool })
  const freezes = createFreezes({
    records: ports.records,
    freeze: ({ cellId }) => runtime.freeze(cellId),
    thaw: ({ cellId }) => runtime.thaw(cellId),
    isStopped: ({ cellId }) => stopped.has(cellId),
    nowMs: () => clock.nowMs,
    onStuck: ({ record }, { waitMs }) => void stuck.push(`${record.cellId} for ${waitMs}`),
    onThawed: ({ record }) => void stuck.push(`${record.cellId} goes on`),
  })
  const copies = createCopies(ports, freezes)
  const prototypeStore = memorySnapshots()
  const prototypes = createPrototypes({
    cells,
    store: prototypeStore,
    memoryFormat: options.memoryFormat === '' ? undefined : memoryFormat,
    findTemplate: ports.findTemplate,
    runStartCommand: overrides.runStartCommand ?? (async () => {}),
    nowMs: () => clock.nowMs,
    envdDir: ports.envdDir,
    save: copies.snapshot,
  })
  const pools = createWarmPools({
    cells,
    prototypes,
    // No warm pool by default, so that tests see only their own sandboxes.
    budgetBytes: options.budgetBytes ?? (options.readySandboxes === undefined ? 0 : 2 ** 40),
    floors: [{ shape, count: options.readySandboxes ?? 0 }],
    adopted: [],
    patienceMs: options.patienceMs,
    ports: {
      records: ports.records,
      setRules: ports.setRules,
      prepare: overrides.prepare ?? (async () => {}),
      assignIdentity: createAssignIdentity(ports),
      findTemplate: ports.findTemplate,
      runStartCommand: overrides.runStartCommand ?? (async () => {}),
      freeze: runtime.freeze,
      thaw: runtime.thaw,
      isAlive: ({ record }) => record.process !== undefined && alive.has(record.process.pid),
      memoryBytes: ports.memoryBytes,
      checkDisk: () => {},
      freeMemoryBytes: overrides.freeMemoryBytes ?? (async () => 2 ** 40),
      nowMs: () => clock.nowMs,
      onError: (error) => void errors.push(error),
    },
  })
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
  return {
    sandboxes,
    pools,
    create,
    records,
    alive,
    slots,
    frozen,
    /** Cells whose process was stopped by a signal. */
    stopped,
    files,
    seen,
    introduced,
    rules,
    levelled,
    errors,
    stuck,
    clock,
    snapshots,
    prototypeStore,
  }
}

function memorySnapshots(): SnapshotStore {
  const all = new Map<string, Snapshot>()
  const place = (id: string) => ({ disk: `/snapshots/${id}/disk`, memoryDir: `/snapshots/${id}/m` })
  return {
    async add(snapshot, write) {
      await write(place(snapshot.snapshotId))
      all.set(snapshot.snapshotId, snapshot)
    },
    find: async (id) => all.get(id),
    list: async () => [...all.values()],
    listQuarantined: async () => [],
    place,
    sizeBytes: async () => 7,
    remove: async (id) => void all.delete(id),
    sweep: async () => {},
  }
}
