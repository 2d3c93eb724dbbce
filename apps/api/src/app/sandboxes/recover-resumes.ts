import { backToPaused } from '../../domain/sandboxes/sandbox-pause.ts'
import type { SandboxStore } from '../../domain/sandboxes/sandbox-store.ts'
import { findAbandoned } from './find-abandoned.ts'
import type { OwnerPorts } from './find-abandoned.ts'

/**
 * Returns sandboxes of a lost node to `paused` whose resume no process works on any more: the api died, or the node did
 * before it answered. If the node comes back and runs one of them, the reconciler finds that out. If the sandbox was
 * started elsewhere until then, its newer generation wins.
 */
export type RecoverResumes = (nodeId: string) => Promise<void>

export function createRecoverResumes(
  ports: OwnerPorts & { readonly store: Pick<SandboxStore, 'listOfNode' | 'update'> },
): RecoverResumes {
  const { store, clock } = ports
  return async (nodeId) => {
    const records = await store.listOfNode(nodeId, ['resuming'])
    if (records.length === 0) return
    const isAbandoned = await findAbandoned(ports)
    for (const { id, generation } of records) {
      await store.update(id, (current) => {
        // A later claim has another generation, and its owner may have a lease newer than the list of leases.
        const isSame = current.state === 'resuming' && current.generation === generation
        const isHere = current.nodeId === nodeId
        return isSame && isHere && isAbandoned(current)
          ? backToPaused(current, clock.now())
          : current
      })
    }
  }
}
