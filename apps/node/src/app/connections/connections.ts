import { newestConnections } from '../../domain/network/connections.ts'
import type { NetworkConnection } from '../../domain/network/connections.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Sandboxes } from '../lifecycle/sandboxes.ts'

/** Connections of a sandbox since it runs. Empty while it is paused: a resume gives it another slot. */
export type ListConnections = (sandboxId: string) => Promise<NetworkConnection[]>

export function createListConnections(ports: {
  readonly sandboxes: Pick<Sandboxes, 'running'>
  connections(slot: Slot): Promise<readonly NetworkConnection[]>
  /** Age of the sandbox's process; undefined if the process is gone. */
  ageMs(sandbox: RunningSandbox): number | undefined
  nowMs(): number
}): ListConnections {
  return async (sandboxId) => {
    const [sandbox] = ports.sandboxes.running(sandboxId)
    const ageMs = sandbox && ports.ageMs(sandbox)
    if (!sandbox || ageMs === undefined) return []
    const all = await ports.connections(sandbox.slot)
    // Entries of an earlier user of the slot may be left, if their removal failed. The times are whole seconds.
    return newestConnections(all, ports.nowMs() - ageMs - 1000)
  }
}
