import type { Cell } from '../../domain/sandboxes/cell.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'
import type { Runtime } from '../../domain/sandboxes/runtime.ts'
import type { EnvdInit, Identity } from '../../domain/sandboxes/sandbox.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Slot } from '../../domain/network/slot.ts'

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
