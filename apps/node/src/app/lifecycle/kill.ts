import type { CellRecord } from '../../domain/sandboxes/cell.ts'
import type { ProcessIdentity } from '../../domain/sandboxes/process-identity.ts'
import type { RunningSandbox } from '../../domain/sandboxes/sandbox.ts'
import type { Cells } from './cells.ts'
import type { Releases } from './releases.ts'
import type { SandboxEvents } from './events.ts'
import type { SandboxRegistry } from './sandbox-registry.ts'
import type { SupersededCells } from './superseded-cells.ts'

export interface KillPorts {
  isAlive(process: ProcessIdentity): boolean
  /** Number of OOM kills in this cell. */
  oomKills(cellId: string): number
  erase(cellId: string): Promise<void>
  /** Ends processes and mounts. Keeps the files. */
  halt(cellId: string): Promise<void>
}

/** Ends sandboxes and removes what they leave on the host. Callers serialize the calls for one sandbox. */
export interface Kill {
  /** Ends a sandbox in any state. Succeeds when there is none. `isElsewhere`: another node has it. */
  any(sandboxId: string, reason: string, isElsewhere?: boolean): Promise<void>
  /** Ends a sandbox whose first process is dead or hangs, and reports why. */
  broken(sandbox: RunningSandbox): Promise<void>
  isDead(sandbox: RunningSandbox): boolean
}

export function createKill(parts: {
  readonly ports: KillPorts
  readonly cells: Pick<Cells, 'erase'>
  readonly registry: SandboxRegistry
  readonly events: SandboxEvents
  readonly superseded: Pick<SupersededCells, 'finish'>
  readonly releases: Pick<Releases, 'finished'>
}): Kill {
  const { ports, cells, registry, events, superseded, releases } = parts
  const { running, paused, quarantined } = registry

  async function killRunning(
    sandbox: RunningSandbox,
    reason: string,
    isElsewhere?: boolean,
  ): Promise<void> {
    const { owner } = sandbox.record
    // Stops the routing of requests to the sandbox; the edge resets its connections.
    events.ended(owner, reason, isElsewhere)
    running.delete(owner.sandboxId)
    const [erasing, clearing] = await Promise.allSettled([
      cells.erase(sandbox),
      superseded.finish(owner.sandboxId),
    ])
    for (const result of [erasing, clearing]) if (result.status === 'rejected') throw result.reason
  }

  function reasonOfDeath({ cellId, memoryMb }: CellRecord): string {
    return ports.oomKills(cellId) > 0
      ? `ran out of memory (limit ${memoryMb} MB)`
      : 'died: its first process ended'
  }

  return {
    async any(sandboxId, reason, isElsewhere) {
      const sandbox = running.get(sandboxId)
      if (sandbox) return killRunning(sandbox, reason, isElsewhere)
      const record = paused.get(sandboxId)
      const cell = quarantined.get(sandboxId)
      if (cell) {
        // Keep the files: a release that can read the record removes them when the control plane asks again.
        await ports.halt(cell.cellId)
        quarantined.delete(sandboxId)
        events.ended({ sandboxId }, reason, isElsewhere)
      }
      if (!record) return superseded.finish(sandboxId)
      paused.delete(sandboxId)
      events.ended(record.owner, reason, isElsewhere)
      await releases.finished(sandboxId)
      await Promise.all([ports.erase(record.cellId), superseded.finish(sandboxId)])
    },
    broken: (sandbox) => killRunning(sandbox, reasonOfDeath(sandbox.record)),
    isDead: ({ record }) => !record.process || !ports.isAlive(record.process),
  }
}
