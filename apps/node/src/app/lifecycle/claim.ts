import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import { createAssignIdentity } from './assign-identity.ts'
import type { AssignIdentityPorts } from './assign-identity.ts'

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
 * Turns a cell with applied network rules into the sandbox of its owner: thaws the cell and makes sure that envd has
 * the identity of the sandbox (ID and access token).
 */
export interface Claim {
  /** Claims a cell and sends the identity to envd. */
  assignAndStart(cell: RunningSandbox, request: ClaimRequest): Promise<RunningSandbox>
  /** Claims a cell whose envd already has the identity. */
  startPreassigned(cell: RunningSandbox, signal: AbortSignal | undefined): Promise<RunningSandbox>
}

/** `thaw` must succeed for cells that are not frozen. */
export function createClaim(ports: ClaimPorts, thaw: (cellId: string) => Promise<void>): Claim {
  const assignIdentity = createAssignIdentity(ports)
  const asRunning = ({ record, slot }: RunningSandbox): RunningSandbox => ({
    record: { ...record, phase: 'running' },
    slot,
  })
  return {
    async assignAndStart(cell, { accessToken, signal }) {
      const { sandboxId, envVars, network } = cell.record.owner
      const caBundle = network?.transforms?.authority?.certificate
      await thaw(cell.record.cellId)
      await assignIdentity(cell, { sandboxId, accessToken }, { envVars, caBundle, signal })
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
      await Promise.all([thaw(cell.record.cellId), ports.dropBootPriority(cell.record.cellId)])
      signal?.throwIfAborted()
      return sandbox
    },
  }
}
