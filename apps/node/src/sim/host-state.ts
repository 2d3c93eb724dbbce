import type { CellRecord } from '../domain/sandboxes/cell.ts'
import { memorySnapshots } from './memory-snapshots.ts'

/** Collections of a simulated host, for tests to inspect. */
export type HostState = ReturnType<typeof createHostState>

export function createHostState() {
  return {
    records: new Map<string, CellRecord>(),
    /** Process IDs. */
    alive: new Set<number>(),
    pids: new Map<string, number>(),
    slots: new Set<number>(),
    frozen: new Set<string>(),
    /** Cells whose process was stopped by a signal. */
    stopped: new Set<string>(),
    files: new Map<string, string>(),
    snapshots: memorySnapshots(),
    /** Identities that envds got. */
    introduced: [] as { readonly address: string; readonly sandboxId: string }[],
    /** Log of rule changes, trusted authorities and restores. */
    rules: [] as string[],
    /** Cells that lost their boot-time CPU priority. */
    levelled: [] as string[],
    errors: [] as unknown[],
    /** Log of cells whose thaw failed or succeeded later. */
    stuck: [] as string[],
    clock: { nowMs: 0 },
  }
}
