import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import { checkGeneration, notFound } from './sandbox.ts'
import type { NodeState, SimulatedSandbox, SimulatedShape } from './sandbox.ts'

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  'snapshotSandbox' | 'deleteSnapshot' | 'listSnapshots'
>

interface SnapshotOptions {
  readonly keepsMemory: () => boolean
  readonly sizeOf: (id: string, withMemory: boolean) => bigint
}

/** Simulates snapshots of running sandboxes. */
export function simulateSnapshots(state: NodeState, { keepsMemory, sizeOf }: SnapshotOptions) {
  const { running, snapshots, failures } = state
  const methods: Methods = {
    async snapshotSandbox({ sandboxId, snapshotId, generation }) {
      failures.throwIfDown()
      checkGeneration(state, { sandboxId, generation })
      if (!running.has(sandboxId)) throw notFound()
      if (snapshots.has(snapshotId)) throw new ConnectError('taken', Code.AlreadyExists)
      await failures.apply('snapshot')
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw notFound()
      const withMemory = keepsMemory()
      snapshots.set(snapshotId, { ...sandbox, sandboxId, keepsMemory: withMemory })
      await failures.apply('snapshot', 'after')
      return { keepsMemory: withMemory, sizeBytes: sizeOf(sandboxId, withMemory) }
    },
    async deleteSnapshot({ snapshotId }) {
      await failures.apply('deleteSnapshot')
      snapshots.delete(snapshotId)
      return {}
    },
    listSnapshots() {
      failures.throwIfDown()
      const snapshotIds = [...snapshots.keys()]
      return { snapshotIds, durableIds: snapshotIds.filter((id) => state.durableFiles.has(id)) }
    },
  }
  return {
    methods,
    /** Returns the number of boots that a new sandbox from this snapshot or template has had. */
    bootsOf(spec: SimulatedShape & Pick<SimulatedSandbox, 'snapshotId'>): number {
      if (spec.snapshotId === undefined) return 1
      const snapshot = snapshots.get(spec.snapshotId) ?? fetchStored(state, spec.snapshotId)
      if (!snapshot) throw notFound()
      const differs = (['templateId', 'cpuCount', 'memoryMb', 'diskSizeMb'] as const).some(
        (field) => snapshot[field] !== spec[field],
      )
      if (differs) throw new ConnectError('other template or size', Code.InvalidArgument)
      return snapshot.keepsMemory ? snapshot.boots : snapshot.boots + 1
    },
    addOrphan(snapshotId: string, sandboxId: string) {
      const sandbox = running.get(sandboxId)
      if (sandbox) snapshots.set(snapshotId, { ...sandbox, sandboxId, keepsMemory: keepsMemory() })
    },
  }
}

function fetchStored({ snapshots, objects }: NodeState, snapshotId: string) {
  const stored = objects?.isDown ? undefined : objects?.snapshots.get(snapshotId)
  if (stored) snapshots.set(snapshotId, stored)
  return stored
}
