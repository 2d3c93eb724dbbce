import { newestConnections } from '../../domain/network/connections.ts'
import type { NetworkConnection } from '../../domain/network/connections.ts'
import type { Slot } from '../../domain/network/slot.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Sandboxes } from '../lifecycle/sandboxes.ts'

/** Connections of a sandbox since it runs. Empty while it is paused: a resume gives it another slot. */
export type ListConnections = (sandboxId: string) => Promise<NetworkConnection[]>

/** Running sandboxes that were denied something since a time, newest first. Without IDs: all. */
export type ListDenied = (
  sinceMs: number,
  sandboxIds?: readonly string[],
) => Promise<DeniedSandbox[]>

export interface DeniedSandbox {
  readonly sandboxId: string
  readonly lastMs: number
}

/** Sandboxes of one answer. A machine runs fewer. */
const maxDenied = 5_000

interface OwnedSlot {
  readonly record: { readonly owner: { readonly sandboxId: string } }
  readonly slot: Slot
}

export function createListDenied(ports: {
  readonly sandboxes: { running(): readonly OwnedSlot[] }
  deniedSince(ms: number): Promise<(slot: Slot) => number | undefined>
}): ListDenied {
  return async (sinceMs, sandboxIds = []) => {
    const asked = new Set(sandboxIds)
    const isAsked = ({ record }: OwnedSlot) => asked.size === 0 || asked.has(record.owner.sandboxId)
    const lastDenied = await ports.deniedSince(sinceMs)
    return ports.sandboxes
      .running()
      .filter(isAsked)
      .flatMap(({ record, slot }) => {
        const lastMs = lastDenied(slot)
        return lastMs === undefined ? [] : [{ sandboxId: record.owner.sandboxId, lastMs }]
      })
      .toSorted((a, b) => b.lastMs - a.lastMs)
      .slice(0, maxDenied)
  }
}

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
