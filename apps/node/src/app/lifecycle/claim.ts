import type { Cell, CellRecord } from '../../domain/sandboxes/cell.ts'
import type {
  Identity,
  EnvdInit,
  ProcessIdentity,
  RunningSandbox,
  Runtime,
} from '../../domain/sandboxes/sandbox.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { WarmPools } from '../pools/warm-pools.ts'

export interface ClaimPorts extends AssignIdentityPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  /** Drops the boot-time CPU priority of a new cell. */
  dropBootPriority(cellId: string): Promise<void>
}

export interface ClaimRequest {
  readonly accessToken: string | undefined
  readonly signal?: AbortSignal
}

/**
 * Turns a cell with applied network rules into the sandbox of its owner: thaws the cell and makes sure envd has its
 * identity.
 */
export interface Claim {
  /** Claims a cell and sends the identity to envd. */
  assignAndStart(cell: RunningSandbox, request: ClaimRequest): Promise<RunningSandbox>
  /** Claims a cell whose envd already has the identity. */
  startPreassigned(cell: RunningSandbox, signal: AbortSignal | undefined): Promise<RunningSandbox>
}

export function createClaim(ports: ClaimPorts, pools: WarmPools): Claim {
  const tell = createAssignIdentity(ports)
  const asRunning = ({ record, slot }: RunningSandbox): RunningSandbox => ({
    record: { ...record, phase: 'running' },
    slot,
  })
  return {
    async assignAndStart(cell, { accessToken, signal }) {
      const { sandboxId, envVars, network } = cell.record.owner
      const caBundle = network?.transforms?.authority?.certificate
      await pools.thaw(cell.record.cellId)
      await tell(cell, { sandboxId, accessToken }, { envVars, caBundle, signal })
      await ports.dropBootPriority(cell.record.cellId)
      const sandbox = asRunning(cell)
      await ports.records.update(sandbox.record)
      signal?.throwIfAborted()
      return sandbox
    },

    async startPreassigned(cell, signal) {
      const sandbox = asRunning(cell)
      // Update the record first: after a crash, the next agent thaws every cell that is recorded as running.
      await ports.records.update(sandbox.record)
      await Promise.all([
        pools.thaw(cell.record.cellId),
        ports.dropBootPriority(cell.record.cellId),
      ])
      signal?.throwIfAborted()
      return sandbox
    },
  }
}

export interface AssignIdentityPorts {
  readonly runtime: Runtime
  initEnvd(slot: Slot, initToken: string, init: EnvdInit, isAlive: () => boolean): Promise<void>
  isAlive(process: ProcessIdentity): boolean
}

/** Sends the identity to a running cell. */
export type AssignIdentity = (
  cell: Cell,
  identity: Identity,
  options?: {
    readonly envVars?: Readonly<Record<string, string>>
    readonly caBundle?: string | undefined
    readonly signal?: AbortSignal | undefined
  },
) => Promise<void>

export function createAssignIdentity(ports: AssignIdentityPorts): AssignIdentity {
  return async ({ record, slot }, identity, { envVars = {}, caBundle, signal } = {}) => {
    const { process, templateId, cpuCount, memoryMb, initToken, setup = defaultSetup } = record
    if (!process) throw new Error(`cell ${record.cellId} has no process`)
    const init = {
      ...identity,
      templateId,
      defaultUser: setup.user,
      defaultWorkdir: setup.workdir,
      envVars: { ...setup.envVars, ...envVars },
      cpuCount,
      memoryMb,
      ...(caBundle !== undefined && { caBundle }),
    }
    const isAlive = () => signal?.aborted !== true && ports.isAlive(process)
    await Promise.all([
      ports.initEnvd(slot, initToken, init, isAlive),
      ports.runtime.setHostname(process, identity.sandboxId),
    ])
  }
}
