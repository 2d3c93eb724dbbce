import type { CellPorts } from '../app/lifecycle/cells.ts'
import type { CopyPorts } from '../app/lifecycle/copies.ts'
import type { SandboxPorts } from '../app/lifecycle/sandboxes.ts'
import type { SlotPool } from '../app/pools/slot-pool.ts'
import type { WarmPoolPorts } from '../app/pools/warm-pools.ts'
import type { Disks } from '../domain/host/disks.ts'
import { parseSubnet, toSlot } from '../domain/network/slot.ts'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'
import type { Runtime, StartRequest } from '../domain/sandboxes/runtime.ts'
import type { HostState } from './host-state.ts'

export type Overrides = Partial<
  Omit<CellPorts & CopyPorts & SandboxPorts & WarmPoolPorts, 'runtime' | 'records' | 'disks'>
> & {
  readonly runtime?: Partial<Runtime>
  readonly disks?: Partial<Disks>
  /** May throw to refuse the write of a record. */
  readonly beforeUpdate?: (record: CellRecord) => void
  /** May throw to refuse the removal of a cell. */
  readonly beforeErase?: (cellId: string) => void
}

export type HostPorts = CellPorts & CopyPorts & SandboxPorts

/** Returns a runtime whose processes exist in `state` only. Without a memory format it cannot checkpoint. */
export function simulateRuntime(
  state: HostState,
  memoryFormat: string | undefined,
  overrides: Partial<Runtime> = {},
): Runtime {
  const { alive, pids, frozen, files, rules } = state
  let nextPid = 100
  async function start({ cell }: StartRequest): Promise<ProcessIdentity> {
    nextPid += 1
    alive.add(nextPid)
    pids.set(cell.cellId, nextPid)
    return { pid: nextPid, started: 'now' }
  }
  return {
    name: 'gvisor',
    noticesKillsLate: true,
    idShift: 0,
    release: async () => memoryFormat ?? 'runsc 0',
    memoryFormat: async () => memoryFormat,
    start,
    async restore(request) {
      rules.push(`${request.slot.number} is restored`)
      return start(request)
    },
    freeze: async (cellId) => void frozen.add(cellId),
    thaw: async (cellId) => void frozen.delete(cellId),
    async saveMemory(_cellId, dir, { flushFiles = async () => {} } = {}) {
      files.set(dir, 'memory')
      await flushFiles()
    },
    setHostname: async () => {},
    setIdleLevel: () => {},
    orphanedRequests: () => [],
    remove: async () => {},
    list: async () => [],
    ...overrides,
  }
}

export function simulateDisks({ files }: HostState, overrides: Partial<Disks> = {}): Disks {
  return {
    create: async (image: string) => void files.set(image, 'empty'),
    copy: async (from: string, to: string) => void files.set(to, files.get(from) ?? 'nothing'),
    awaitUnused: async () => {},
    flush: async () => {},
    usedBytes: async () => 1,
    isLinked: async () => false,
    sharesBlocks: async () => false,
    reserveSpace: () => ({ [Symbol.dispose]() {} }),
    ...overrides,
  }
}

export function simulatePorts(
  state: HostState,
  overrides: Overrides,
  { runtime, disks }: { readonly runtime: Runtime; readonly disks: Disks },
): HostPorts {
  return {
    ...filePorts(state, overrides),
    ...sandboxPorts(state),
    ...overrides,
    runtime,
    disks,
  }
}

function filePorts(state: HostState, { beforeUpdate, beforeErase }: Overrides) {
  const { records, files, alive, pids, frozen } = state
  async function halt(cellId: string): Promise<void> {
    alive.delete(pids.get(cellId) ?? 0)
    frozen.delete(cellId)
  }
  async function removeFiles(cellId: string): Promise<void> {
    records.delete(cellId)
    for (const path of files.keys()) if (path.startsWith(`/cells/${cellId}/`)) files.delete(path)
  }
  return {
    records: {
      create: async (record) => void records.set(record.cellId, record),
      async update(record) {
        beforeUpdate?.(record)
        records.set(record.cellId, record)
      },
    },
    admitDisk: async () => {},
    checkDisk: () => {},
    mountRootfs: async () => ({ path: '/rootfs', hasSudo: true }),
    hasSudo: async () => true,
    bundleDir: (id) => `/cells/${id}/bundle`,
    diskImage: (id, name) => `/cells/${id}/${name}`,
    memoryDir: (id) => `/cells/${id}/memory`,
    useMemory: (_dir, work) => work(),
    findTemplate: (templateId) => (templateId === 'base' ? { layer: 'l1' } : undefined),
    envdDir: '/envd/e1',
    findEnvd: async (name) => `/envd/${name}`,
    halt,
    async retire(cellId) {
      await removeFiles(cellId)
      return async () => {}
    },
    async erase(cellId) {
      beforeErase?.(cellId)
      await halt(cellId)
      await removeFiles(cellId)
    },
  } satisfies Partial<HostPorts>
}

function sandboxPorts(state: HostState) {
  const { snapshots, introduced, rules, alive, levelled, files } = state
  let authorities = 0
  return {
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
    onRemovalError: (error) => void state.errors.push(error),
    onReleaseError: (error) => void state.errors.push(error),
    keptBytes: async ({ memory }) => (memory === undefined ? 3 : 5),
    async tidy({ cellId, disk, memory }) {
      for (const path of files.keys()) {
        if (!path.startsWith(`/cells/${cellId}/`)) continue
        if (!path.endsWith(`/${disk}`) && !(memory && path.endsWith('/memory'))) files.delete(path)
      }
    },
  } satisfies Partial<HostPorts>
}

export function simulateSlots({ slots }: HostState): SlotPool {
  const subnet = parseSubnet('10.0.0.0/24')
  let nextSlot = 0
  return {
    async take() {
      const slot = toSlot(subnet, 'atx-', nextSlot++)
      slots.add(slot.number)
      return slot
    },
    giveBack: async (slot: { readonly number: number }) => void slots.delete(slot.number),
    slot: (number: number) => toSlot(subnet, 'atx-', number),
    close: async () => {},
  }
}
