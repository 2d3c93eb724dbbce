import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import type { createEvents } from './events.ts'
import type { SimulatedSandbox } from './node.ts'
import type { Trouble } from './trouble.ts'

/** Paused sandboxes and snapshots of a simulated node. */

export interface PausedSandbox extends SimulatedSandbox {
  readonly keepsMemory: boolean
  /** The node cannot read the record of the sandbox. */
  readonly isQuarantined?: boolean
}

export interface SimulatedSnapshot extends PausedSandbox {
  readonly sandboxId: string
}

type Made = Pick<
  SimulatedSandbox,
  'snapshotId' | 'templateId' | 'cpuCount' | 'memoryMb' | 'diskSizeMb'
>

interface World {
  readonly running: Map<string, SimulatedSandbox>
  readonly paused: Map<string, PausedSandbox>
  readonly snapshots: Map<string, SimulatedSnapshot>
  readonly events: ReturnType<typeof createEvents>
  readonly trouble: Trouble
  /** Current size on disk. */
  readonly sizeOf: (id: string, withMemory: boolean) => bigint
}

export function keepSandboxes(world: World) {
  const { running, paused, snapshots, events, trouble, sizeOf } = world
  let keepsMemory = true

  const refuseQuarantined = (sandboxId: string) => {
    if (paused.get(sandboxId)?.isQuarantined) {
      throw new ConnectError(`Sandbox ${sandboxId} cannot be used`, Code.DataLoss)
    }
  }

  const service: Partial<ServiceImpl<typeof NodeService>> = {
    async pauseSandbox({ sandboxId, keepMemory }) {
      trouble.refuse()
      refuseQuarantined(sandboxId)
      if (paused.has(sandboxId)) return {}
      if (!running.has(sandboxId)) throw absent()
      if (keepMemory && !keepsMemory) throw new ConnectError('runc', Code.FailedPrecondition)
      await trouble.meet('pause')
      if (keepMemory) await trouble.meet('keepMemory')
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw absent()
      running.delete(sandboxId)
      paused.set(sandboxId, { ...sandbox, keepsMemory: keepMemory })
      events.publish({ case: 'paused', value: { sandboxId } })
      await trouble.meet('pause', 'after')
      return { sizeBytes: sizeOf(sandboxId, keepMemory) }
    },
    async resumeSandbox({ sandboxId, boot, accessToken, network, ingress }) {
      trouble.refuse()
      refuseQuarantined(sandboxId)
      if (running.has(sandboxId)) return { sandbox: runningAt(sandboxId) }
      if (!paused.has(sandboxId)) throw absent()
      await trouble.meet('resume')
      const found = paused.get(sandboxId)
      if (!found) throw absent()
      const { keepsMemory: isKept, ...sandbox } = found
      paused.delete(sandboxId)
      const boots = sandbox.boots + (boot || !isKept ? 1 : 0)
      running.set(sandboxId, { ...sandbox, accessToken, network, ingress, boots })
      events.publish({ case: 'started', value: runningAt(sandboxId) })
      await trouble.meet('resume', 'after')
      return { sandbox: runningAt(sandboxId) }
    },
    async snapshotSandbox({ sandboxId, snapshotId }) {
      trouble.refuse()
      if (!running.has(sandboxId)) throw absent()
      if (snapshots.has(snapshotId)) throw new ConnectError('taken', Code.AlreadyExists)
      await trouble.meet('snapshot')
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw absent()
      snapshots.set(snapshotId, { ...sandbox, sandboxId, keepsMemory })
      await trouble.meet('snapshot', 'after')
      return { keepsMemory, sizeBytes: sizeOf(sandboxId, keepsMemory) }
    },
    async deleteSnapshot({ snapshotId }) {
      await trouble.meet('deleteSnapshot')
      snapshots.delete(snapshotId)
      return {}
    },
    listSnapshots() {
      trouble.refuse()
      return { snapshotIds: [...snapshots.keys()] }
    },
  }

  return {
    service,
    get keepsMemory() {
      return keepsMemory
    },
    forgetMemory: () => void (keepsMemory = false),
    /** Number of boots that a new sandbox of this origin has had. */
    bootsFrom(made: Made): number {
      if (made.snapshotId === undefined) return 1
      const from = snapshots.get(made.snapshotId)
      if (!from) throw absent()
      const differs = (['templateId', 'cpuCount', 'memoryMb', 'diskSizeMb'] as const).some(
        (field) => from[field] !== made[field],
      )
      if (differs) throw new ConnectError('other template or size', Code.InvalidArgument)
      return from.keepsMemory ? from.boots : from.boots + 1
    },
    plantSnapshot(snapshotId: string, sandboxId: string) {
      const sandbox = running.get(sandboxId)
      if (sandbox) snapshots.set(snapshotId, { ...sandbox, sandboxId, keepsMemory })
    },
    list: () =>
      [...paused].map(([sandboxId, sandbox]) => ({
        sandboxId,
        address: '',
        state: sandbox.isQuarantined ? SandboxState.QUARANTINED : SandboxState.PAUSED,
        keepsMemory: sandbox.keepsMemory,
      })),
  }
}

function runningAt(sandboxId: string) {
  return { sandboxId, address: '127.0.0.1', state: SandboxState.RUNNING }
}

function absent(): ConnectError {
  return new ConnectError('absent', Code.NotFound)
}
