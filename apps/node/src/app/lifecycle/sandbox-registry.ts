import { Fault } from '@atoll/kit/fault'
import { quarantinedFault } from '../../domain/sandboxes/quarantine.ts'
import type { QuarantinedCell } from '../../domain/sandboxes/quarantine.ts'
import type { PausedSandbox, RunningSandbox } from '../../domain/sandboxes/sandbox.ts'

/** Sandboxes that an earlier agent left on this node. */
export interface AdoptedSandboxes {
  readonly running: readonly RunningSandbox[]
  readonly paused: readonly PausedSandbox[]
  readonly quarantined: readonly QuarantinedCell[]
}

/** State of every sandbox on this node, by sandbox ID. */
export interface SandboxRegistry {
  readonly running: Map<string, RunningSandbox>
  readonly paused: Map<string, PausedSandbox>
  /** Sandboxes with unreadable records whose ID is known. */
  readonly quarantined: Map<string, QuarantinedCell>
  /** IDs of sandboxes that are being paused: they are frozen or soon will be. */
  readonly pausing: Set<string>
  /** Returns a running sandbox, or throws a fault. */
  find(sandboxId: string): RunningSandbox
  /** Throws a fault when a sandbox already has this ID. */
  checkUnused(sandboxId: string): void
  /** Whether this ID belongs, or may belong, to a sandbox with an unreadable record. */
  isQuarantined(sandboxId: string): boolean
  /** Throws a fault when the sandbox has a newer generation. */
  checkGeneration(sandboxId: string, generation: number): void
}

export function createSandboxRegistry(adopted: AdoptedSandboxes): SandboxRegistry {
  const running = new Map(adopted.running.map((one) => [one.record.owner.sandboxId, one]))
  const paused = new Map(adopted.paused.map((one) => [one.owner.sandboxId, one]))
  const quarantined = new Map(
    adopted.quarantined.flatMap((cell) => {
      const { sandboxId } = cell
      const isReadElsewhere = !sandboxId || running.has(sandboxId) || paused.has(sandboxId)
      return isReadElsewhere ? [] : [[sandboxId, cell] as const]
    }),
  )
  const hasUnnamedQuarantine = adopted.quarantined.some(({ sandboxId }) => !sandboxId)

  /** An unknown ID may belong to a sandbox whose record does not even show its ID. */
  const isQuarantined = (sandboxId: string) =>
    quarantined.has(sandboxId) ||
    (hasUnnamedQuarantine && !running.has(sandboxId) && !paused.has(sandboxId))

  return {
    running,
    paused,
    quarantined,
    pausing: new Set(),
    isQuarantined,

    find(sandboxId) {
      const sandbox = running.get(sandboxId)
      if (sandbox) return sandbox
      if (isQuarantined(sandboxId)) throw quarantinedFault(`Sandbox ${sandboxId}`)
      throw new Fault(
        'not_found',
        'sandbox_not_found',
        `Sandbox ${sandboxId} is not running on this node`,
      )
    },

    checkGeneration(sandboxId, generation) {
      const owner = running.get(sandboxId)?.record.owner ?? paused.get(sandboxId)?.owner
      const newest = owner?.generation ?? 0
      if (generation >= newest) return
      throw new Fault(
        'conflict',
        'stale_generation',
        `Sandbox ${sandboxId} has generation ${newest}, and the call is for generation ${generation}: it was started again since the call was made`,
      )
    },

    checkUnused(sandboxId) {
      const isUsed = running.has(sandboxId) || paused.has(sandboxId) || quarantined.has(sandboxId)
      if (isUsed) throw idTaken('Sandbox', sandboxId)
    },
  }
}

export function idTaken(what: string, id: string): Fault {
  return new Fault('conflict', 'id_taken', `${what} ${id} already exists on this node`)
}
