import type { CellRecord } from '../domain/cell.ts'
import type { Introduction, ProcessIdentity, RunningSandbox, Runtime } from '../domain/sandbox.ts'
import type { Slot } from '../domain/slot.ts'
import type { Supply } from './supply.ts'

export interface ClaimPorts {
  readonly records: { update(record: CellRecord): Promise<void> }
  readonly runtime: Runtime
  introduce(
    slot: Slot,
    initToken: string,
    introduction: Introduction,
    isAlive: () => boolean,
  ): Promise<void>
  isAlive(process: ProcessIdentity): boolean
  /** Takes away the start that it had over others. */
  level(cellId: string): Promise<void>
}

export interface ClaimRequest {
  readonly accessToken: string | undefined
  readonly signal?: AbortSignal
}

/** Makes a cell, whose rules are in force, the sandbox of its owner: it may go on, and envd learns who it is. */
export type Claim = (cell: RunningSandbox, request: ClaimRequest) => Promise<RunningSandbox>

export function createClaim(ports: ClaimPorts, supply: Supply): Claim {
  return async ({ record, slot }, { accessToken, signal }) => {
    const { owner, process, templateId, cpuCount, memoryMb, initToken } = record
    if (!process) throw new Error(`cell ${record.cellId} has no process`)
    const { sandboxId, envVars } = owner
    await supply.wake(record.cellId)
    const introduction = { sandboxId, templateId, accessToken, envVars, cpuCount, memoryMb }
    const isAlive = () => signal?.aborted !== true && ports.isAlive(process)
    await Promise.all([
      ports.introduce(slot, initToken, introduction, isAlive),
      ports.runtime.setHostname(process, sandboxId),
    ])
    await ports.level(record.cellId)
    const sandbox = { record: { ...record, phase: 'running' as const }, slot }
    await ports.records.update(sandbox.record)
    signal?.throwIfAborted()
    return sandbox
  }
}
