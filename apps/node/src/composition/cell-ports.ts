import { join } from 'node:path'
import { createAuthority } from '@atoll/egress/authority'
import { createAssignIdentity } from '../app/lifecycle/assign-identity.ts'
import { createRunStartCommand } from '../app/lifecycle/start-command.ts'
import { cellDir, memoryDir } from '../domain/host/installation.ts'
import type { Slot } from '../domain/network/slot.ts'
import type { Cell, CellRecord } from '../domain/sandboxes/cell.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import type { EnvdInit } from '../domain/sandboxes/sandbox.ts'
import { envdCommands } from '../envd/commands.ts'
import { initEnvd, prepareEnvd, trustCertificate } from '../envd/init.ts'
import { isAlive } from '../linux/processes/process.ts'
import type { Host } from './host.ts'

/** Access to cells on this host, which most use cases share. */
export type CellAccess = ReturnType<typeof createCellPorts>

export function createCellPorts(parts: {
  readonly host: Host
  readonly runtime: Runtime
  memoryBytes(cellId: string): Promise<number>
  /** Bytes of all disks of running and paused sandboxes. */
  committedBytes(): number
}) {
  const { host, runtime, committedBytes } = parts
  const { installation, records, disks, space } = host
  return {
    records,
    runtime,
    disks,
    memoryBytes: parts.memoryBytes,
    bundleDir: (cellId: string) => join(cellDir(installation, cellId), 'bundle'),
    diskImage: (cellId: string, name: string) => join(cellDir(installation, cellId), name),
    memoryDir: (cellId: string) => memoryDir(installation, cellId),
    setRules: host.firewall.setRules,
    createAuthority,
    trust: ({ record, slot }: Cell, certificate: string) =>
      trustCertificate(slot.sandboxAddress, record.initToken, certificate),
    admitDisk: space.admitDisk,
    checkDisk: (sizeMb = 0) =>
      space.checkSandbox({ diskBytes: sizeMb * 1024 ** 2, committedBytes }),
    halt: host.halt,
    erase: host.erase,
    tidy: host.tidy,
    retire: records.retire,
    dropBootPriority: host.cgroups.dropBootPriority,
  }
}

/** Requests to the envd of a cell. */
export type EnvdAccess = ReturnType<typeof createEnvdPorts>

export function createEnvdPorts(host: Host, runtime: Runtime) {
  const identityPorts = {
    runtime,
    initEnvd: (slot: Slot, initToken: string, init: EnvdInit, isStillWanted: () => boolean) =>
      initEnvd(slot.sandboxAddress, initToken, init, { isAlive: isStillWanted }),
    isAlive,
  }
  const assignIdentity = createAssignIdentity(identityPorts)
  const runStartCommand = createRunStartCommand({
    assignIdentity,
    commands: envdCommands,
    dropBootPriority: host.cgroups.dropBootPriority,
  })
  return { identityPorts, assignIdentity, runStartCommand, prepare }
}

/** Waits for envd and makes it load everything it will need. */
function prepare(cell: Cell): Promise<void> {
  const { record, slot } = cell
  return prepareEnvd(slot.sandboxAddress, record.initToken, { isAlive: () => isCellAlive(cell) })
}

export function isCellAlive({ record }: Pick<Cell, 'record'>): boolean {
  return record.process !== undefined && isAlive(record.process)
}

/** Returns the fields that identify a cell in log entries. */
export function idsOf({ cellId, owner }: CellRecord) {
  return { cellId, sandboxId: owner?.sandboxId }
}
